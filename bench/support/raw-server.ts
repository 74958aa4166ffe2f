/** The baseline of every HTTP figure: node:http with one static JSON answer. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const body = process.argv[2] ?? '{"status":"ok"}'
const headers = {
  'content-type': 'application/json; charset=utf-8',
  'content-length': Buffer.byteLength(body),
}
const server = createServer((_request, response) => response.writeHead(200, headers).end(body))
server.keepAliveTimeout = 75_000
server.listen(0, '127.0.0.1', () => {
  console.log(`ready http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
