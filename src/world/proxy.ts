import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FaultDial } from './faults.ts'
import { bodyOf, meetFault, type Verdict } from './faulty.ts'
import { type Listening, listen } from './listen.ts'

type Options = {
  wish: number
  dial: FaultDial
  /** Undefined while the server behind is down: then the line is cut, as a closed port would. */
  target: () => number | undefined
  before?: () => Promise<void> | undefined
}

const undisturbed: Verdict = { now: 'forward', dropReply: false }

type Delivery = { agent: Agent; port: number; incoming: IncomingMessage; body: Buffer }

const deliver = ({ agent, port, incoming, body }: Delivery, onReply: (reply: IncomingMessage) => void) => {
  const headers = { ...incoming.headers, host: `127.0.0.1:${port}`, 'content-length': String(body.length) }
  delete headers['transfer-encoding']
  const options = { agent, port, host: '127.0.0.1', path: incoming.url, method: incoming.method, headers }
  const outgoing = request(options, onReply)
  // A node that dies in the middle of a call takes the line with it: nobody may read that as an answer.
  outgoing.once('error', () => incoming.socket.destroy())
  outgoing.end(body)
}

const pass = (delivery: Delivery, answer: ServerResponse) =>
  deliver(delivery, (reply) => {
    answer.writeHead(reply.statusCode ?? 502, reply.headers)
    reply.once('error', () => answer.destroy())
    reply.pipe(answer)
  })

/** Delivers the request, waits until the server has answered in full, and says nothing. */
const passAndDrop = (delivery: Delivery) =>
  deliver(delivery, (reply) => {
    reply.resume()
    reply.once('close', () => delivery.incoming.socket.destroy())
  })

/** A line that both sides may speak on at any time: joined as it is, and not looked into. */
const join = (port: number | undefined, incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
  socket.on('error', () => {})
  if (port === undefined) return socket.destroy()
  const onward = connect(port, '127.0.0.1')
  onward.on('error', () => socket.destroy())
  socket.once('close', () => onward.destroy())
  onward.once('close', () => socket.destroy())
  const lines = [`${incoming.method} ${incoming.url} HTTP/1.1`]
  for (let at = 0; at < incoming.rawHeaders.length; at += 2)
    lines.push(`${incoming.rawHeaders[at]}: ${incoming.rawHeaders[at + 1]}`)
  onward.write(`${lines.join('\r\n')}\r\n\r\n`)
  onward.write(head)
  onward.pipe(socket).pipe(onward)
}

/** What clients see of a chain: the node itself, plus whatever the fault dial does to it. */
export const startProxy = async ({ wish, dial, target, before }: Options): Promise<Listening> => {
  const agent = new Agent({ keepAlive: true })
  const handle = async (incoming: IncomingMessage, answer: ServerResponse) => {
    const body = await bodyOf(incoming)
    // Undisturbed requests are not looked into.
    const verdict = dial.isSet() ? await meetFault(dial, incoming, answer, body) : undisturbed
    if (verdict.now === 'answered') return
    const waiting = before?.()
    if (waiting) await waiting
    const port = target()
    if (port === undefined) incoming.socket.destroy()
    else if (verdict.dropReply) passAndDrop({ agent, port, incoming, body })
    else pass({ agent, port, incoming, body }, answer)
  }
  const listening = await listen(
    (incoming, answer) => void handle(incoming, answer).catch(() => incoming.socket.destroy()),
    { wish },
    (incoming, socket, head) => join(target(), incoming, socket, head),
  )
  return {
    port: listening.port,
    close: async () => {
      agent.destroy()
      await listening.close()
    },
  }
}
