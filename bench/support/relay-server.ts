/** The baseline of a chat: what comes over a WebSocket goes out as events, and nothing is stored. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { WebSocket } from 'ws'

const [upstream = ''] = process.argv.slice(2)

const server = createServer(async (request, response) => {
  const { query } = JSON.parse(await text(request)) as { query: string }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  request.socket.setNoDelay(true)
  let seq = 0
  const send = (event: string, data: object) =>
    response.write(`id: chat:${++seq}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
  send('meta', { chat_id: 'chat' })
  const socket = new WebSocket(upstream, { perMessageDeflate: false })
  socket.once('open', () => socket.send(query))
  socket.on('message', (piece) => send('chunk', { text: String(piece) }))
  socket.once('close', () => {
    send('done', { chat_id: 'chat', status: 'completed' })
    response.end()
  })
})
server.keepAliveTimeout = 75_000
server.listen(0, '127.0.0.1', () =>
  console.log(`ready http://127.0.0.1:${(server.address() as AddressInfo).port}`),
)
