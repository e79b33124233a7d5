package api
import ("testing";"fmt"
"github.com/go-json-experiment/json"
"github.com/go-json-experiment/json/jsontext"
"errors")
type mem[T any] struct{ st int; v T }
func (m *mem[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
 if m.st!=0 { return errors.New("twice") }
 if d.PeekKind()=='n' { m.st=1; _,err:=d.ReadToken(); return err }
 m.st=2
 return json.UnmarshalDecode(d,&m.v)
}
func (*mem[T]) nullable(){}
type in struct { A mem[string] `json:"a"`; B mem[bool] `json:"b"`}
type body struct { X mem[string] `json:"x"`; L mem[[]in] `json:"l"`; M mem[map[string]string] `json:"m"`; D mem[[]string] `json:"d"`; R mem[jsontext.Value] `json:"r"`}
func TestZ(t *testing.T){
 o:=json.JoinOptions(json.RejectUnknownMembers(true), json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, v any) error {
   if d.PeekKind()!='n' { return errors.ErrUnsupported }
   if _,ok:=v.(interface{nullable()}); ok { return errors.ErrUnsupported }
   if _,ok:=v.(*jsontext.Value); ok { return errors.ErrUnsupported }
   return errors.New("null!")
 })))
 for _,s:=range []string{`{"x":1}`,`{"x":"a","x":"b"}`,`{"X":"a"}`,`{"l":[{"a":"1"},{"a":true}]}`,`{"l":[{"c":"1"}]}`,`{"l":[null]}`,`{"m":{"a":null}}`,`{"m":{"a":"1","a":"2"}}`,`{"d":["a",null]}`,`{"d":["a",3]}`,`[]`,`null`,``,`{"x":"\ud800"}`,"{\"x\":\"\xff\"}",`{"x":"a"} x`,`{"x":"a",}`,`{"r":{"a":1,"a":2}}`,`{"l":[{"a":"1","a":"2"}]}`,`{"l":[{"b":"1"}]}`,`{"r":null}`,"\xef\xbb\xbf{}",`{"x":null}`, `{"l":[{"a":"x","b":tru}]}`} {
 for _, dup := range []bool{false,true} {
  var b body
  err:=json.Unmarshal([]byte(s),&b,o,jsontext.AllowDuplicateNames(dup))
  var se *json.SemanticError; var sy *jsontext.SyntacticError
  p:=""
  if errors.As(err,&se){ p=fmt.Sprintf("SEM %q kind=%v go=%v err=%v", se.JSONPointer,se.JSONKind,se.GoType,se.Err)}
  if errors.As(err,&sy){ p+=fmt.Sprintf("SYN %q off %d err=%v", sy.JSONPointer,sy.ByteOffset,sy.Err)}
  fmt.Println(s,dup,"=>",p, errors.Is(err,json.ErrUnknownName), errors.Is(err,jsontext.ErrDuplicateName))
 }}
}
