// Runs dynalite on a free port until standard input ends, which is when whoever
// started this closes it or is gone. The one argument is dynalite's folder.
// Prints the port in a line of its own once it listens.
const server = require(process.argv[1])({ createTableMs: 20, deleteTableMs: 0, updateTableMs: 0 })
server.listen(0, '127.0.0.1', () => console.log('port ' + server.address().port))
process.stdin.on('end', () => process.exit()).resume()

// Dynalite throws the error of a client that goes away in the middle of a call,
// as each does whose time is over. That must not end it for all others.
process.on('uncaughtException', error => {
  if (error.code === 'ECONNRESET') return
  console.error(error)
  process.exit(1)
})
