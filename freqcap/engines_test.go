package freqcap_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sendgate/sendgate/internal/redistest"
)

// engine is a kind of Redis that the package has to work on.
type engine struct {
	name string
	open func(testing.TB) redis.UniversalClient
}

var (
	single   = engine{"redis", func(t testing.TB) redis.UniversalClient { return redistest.Start(t).Client() }}
	embedded = engine{"embedded", redistest.Embedded}
	cluster  = engine{"cluster", func(t testing.TB) redis.UniversalClient { return redistest.StartCluster(t).Client() }}
)

// suite is what has to hold on every engine. Each part works in a space of its
// own.
var suite = []struct {
	name string
	test func(*testing.T, redis.UniversalClient)
}{
	{"Golden", testGolden},
	{"Presumptions", testPresumptions},
	{"Histories", testHistories},
	{"ADeniedAskCostsNothing", testADeniedAskCostsNothing},
	{"AllCapsAreChargedOrNone", testAllCapsAreChargedOrNone},
	{"AnIDIsChargedOncePerCap", testAnIDIsChargedOncePerCap},
	{"OneCounterPerSetOfFields", testOneCounterPerSetOfFields},
	{"AClockThatStepsBackFreesNothing", testAClockThatStepsBackFreesNothing},
	{"ChangedLimits", testChangedLimits},
	{"AFullCapSaysWhenItHasRoom", testAFullCapSaysWhenItHasRoom},
	{"UsersWithOddNames", testUsersWithOddNames},
	{"SlotsAreGivenInTheOrderOfTheList", testSlotsAreGivenInTheOrderOfTheList},
	{"ALookJudgesEachAskAlone", testALookJudgesEachAskAlone},
	{"OneListWithDifferentLimits", testOneListWithDifferentLimits},
	{"EveryKeyHasATTLAfterEveryOutcome", testEveryKeyHasATTLAfterEveryOutcome},
	{"ADenialChangesNothing", testADenialChangesNothing},
	{"AnErrorOfOneUserHarmsNoOther", testAnErrorOfOneUserHarmsNoOther},
	{"DamagedRecords", testDamagedRecords},
	{"RecordsDamagedAnyhow", testRecordsDamagedAnyhow},
	{"GivingBack", testGivingBack},
	{"ASlotOfSeveralChannels", testASlotOfSeveralChannels},
	{"MoreUsesThanAreNoted", testMoreUsesThanAreNoted},
	{"ReportsAndClocks", testReportsAndClocks},
	{"Holds", testHolds},
	{"AHoldOutlivesTheMemoryOfItsID", testAHoldOutlivesTheMemoryOfItsID},
	{"AskedAgainWithinAShortHold", testAskedAgainWithinAShortHold},
	{"AskedAgainWithinAHold", testAskedAgainWithinAHold},
	{"CategoriesHoldApart", testCategoriesHoldApart},
	{"AReportOfAnAttemptBefore", testAReportOfAnAttemptBefore},
	{"ADropTakesItsOwn", testADropTakesItsOwn},
	{"TwoGatesAskForOneID", testTwoGatesAskForOneID},
	{"MoreIDsThanAreRemembered", testMoreIDsThanAreRemembered},
	{"MoreHoldsThanThereIsRoomFor", testMoreHoldsThanThereIsRoomFor},
	{"AHoldUnderManyCaps", testAHoldUnderManyCaps},
	{"ADeliveryWithoutAReservation", testADeliveryWithoutAReservation},
	{"Buckets", testBuckets},
	{"BucketsRememberIDs", testBucketsRememberIDs},
	{"Calendar", testCalendar},
	{"CalendarOfSomebodyWhoMoves", testCalendarOfSomebodyWhoMoves},
	{"KindsTogether", testKindsTogether},
	{"KindsWhenTheClockStepsBack", testKindsWhenTheClockStepsBack},
	{"AnIDThatWillBeForgotten", testAnIDThatWillBeForgotten},
	{"TheLongerMemoryHolds", testTheLongerMemoryHolds},
	{"PriorityKeepsTheLastSlots", testPriorityKeepsTheLastSlots},
	{"TakeTheFirstThatMayGo", testTakeTheFirstThatMayGo},
	{"Subjects", testSubjects},
	{"ADeviceOfSomebodyUnknown", testADeviceOfSomebodyUnknown},
	{"SubjectsInAList", testSubjectsInAList},
	{"ReportsOfAHousehold", testReportsOfAHousehold},
	{"Reports", testReports},
	{"ListsOfSeveralSubjects", testListsOfSeveralSubjects},
	{"GatesThatAreKilled", testGatesThatAreKilled},
	{"FlushedScriptsUnderLoad", testFlushedScriptsUnderLoad},
}

func TestEngines(t *testing.T) {
	t.Parallel()
	for _, e := range []engine{single, embedded, cluster} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			client := e.open(t)
			for _, s := range suite {
				t.Run(s.name, func(t *testing.T) { s.test(t, client) })
			}
		})
	}
}
