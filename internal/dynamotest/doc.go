// Package dynamotest gives tests a DynamoDB of their own: dynalite, a server
// that speaks its protocol, as tools/package-lock.json has it.
//
// It is a requirement, never an option: where it is not installed the test
// fails. Everything that is started ends with its test, and also when the test
// binary is killed.
//
// Dynalite has no transactions, streams or expiry, never runs out of capacity,
// answers every batch in full, and its indexes do not lag. What code does about
// those is tested with a server that plays them.
package dynamotest
