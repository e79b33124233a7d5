// Runs dynalite, which stands in for DynamoDB, until it is told to end. What it
// is asked to keep, it keeps in the folder of the first argument. The second is
// host:port to listen on; port 0 is any that is free. Prints the port in a line
// of its own once it listens.
const [folder, address] = process.argv.slice(2)
const [host, port] = address.split(':')
const server = require('dynalite')({ path: folder, createTableMs: 20, deleteTableMs: 0, updateTableMs: 0 })
server.listen(Number(port), host, () => console.log('port ' + server.address().port))

// As the first process of a container it gets no signal that it does not ask
// for. Closing gives the folder back in good order; clients that keep their
// connections are not waited for.
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, () => {
    server.close(() => process.exit())
    server.closeAllConnections()
  })
}

// Dynalite throws the error of a client that goes away in the middle of a call,
// as each does whose time is over. That must not end it for all others.
process.on('uncaughtException', error => {
  if (error.code === 'ECONNRESET') return
  console.error(error)
  process.exit(1)
})
