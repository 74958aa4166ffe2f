import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http'
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
  )
  return {
    port: listening.port,
    close: async () => {
      agent.destroy()
      await listening.close()
    },
  }
}
