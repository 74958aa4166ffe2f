import {
  Agent,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from 'node:http'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import type { ActivePreset, FaultDial } from './faults.ts'
import { applyFault, bodyOf, lineFaultOf, meetFault, type Verdict } from './faulty.ts'
import { type Listening, listen } from './listen.ts'

/** Where a server of the world listens; not always on the address that clients know. */
export type Place = { host: string; port: number }

type Options = {
  wish: number
  dial: FaultDial
  /** Undefined while the server behind is down: then the line is cut, as a closed port would. */
  target: () => Place | undefined
  before?: () => Promise<void> | undefined
  /** Why a request is not let through to the server, if so. */
  refuses?: (incoming: IncomingMessage, body: Buffer) => string | undefined
  /** Serves the request instead while the dial holds a preset. */
  realism?: Realism
  /** Writes down the requests that it wants, before and after the server has them. */
  records?: Records
  /** Serves a line that both sides may speak on at any time; without it the line is not looked into. */
  join?: (place: Place, incoming: IncomingMessage, socket: Duplex, head: Buffer) => void
}

type Records = {
  isChange: (body: string) => boolean
  record: (body: string, ask: (body: string) => Promise<string>) => Promise<string>
}

type Request = { preset: ActivePreset; body: Buffer }

/** What misbehaves in the contents and not on the line; `ask` reaches the server behind. */
export type Realism = {
  answer: (
    request: Request,
    ask: (body: string, headers?: Record<string, string>) => Promise<string>,
  ) => Promise<string>
}

const undisturbed: Verdict = { now: 'forward', dropReply: false }

type Delivery = {
  agent: Agent
  place: Place
  incoming: IncomingMessage
  body: Buffer
  extraHeaders?: Record<string, string>
}

const deliver = (
  delivery: Delivery,
  onReply: (reply: IncomingMessage) => void,
  onError?: (error: Error) => void,
) => {
  const { agent, incoming, body, extraHeaders } = delivery
  const { host, port } = delivery.place
  const headers: OutgoingHttpHeaders = { ...incoming.headers }
  delete headers['transfer-encoding']
  Object.assign(headers, extraHeaders)
  headers.host = `${host}:${port}`
  headers['content-length'] = String(body.length)
  const options = { agent, port, host, path: incoming.url, method: incoming.method, headers }
  const outgoing = request(options, onReply)
  // A node that dies in the middle of a call takes the line with it: nobody may read that as an answer.
  outgoing.once('error', (error) => {
    incoming.socket.destroy()
    onError?.(error)
  })
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

const askPlain = (
  delivery: Omit<Delivery, 'body'>,
  body: string,
  extraHeaders: Record<string, string> = {},
): Promise<string> =>
  new Promise((resolve, reject) =>
    deliver(
      { ...delivery, body: Buffer.from(body), extraHeaders },
      (reply) => {
        const chunks: Buffer[] = []
        reply.on('data', (chunk: Buffer) => chunks.push(chunk))
        reply.once('error', reject)
        reply.once('end', () => resolve(Buffer.concat(chunks).toString()))
      },
      reject,
    ),
  )

type Ask = Parameters<Realism['answer']>[1]

const recordedBy = (records: Records | undefined, plain: Ask): Ask => {
  if (!records) return plain
  return (text, headers) =>
    records.isChange(text) ? records.record(text, (each) => plain(each, headers)) : plain(text, headers)
}

const sayJson = (answer: ServerResponse, said: string) => {
  answer.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(said) })
  answer.end(said)
}

type Misbehaving = { delivery: Delivery; preset: ActivePreset; realism: Realism; ask: Ask }

const misbehave = async ({ delivery, preset, realism, ask }: Misbehaving, answer: ServerResponse) => {
  const { incoming, body } = delivery
  const verdict = await applyFault(lineFaultOf(preset), incoming, answer)
  if (verdict.now === 'answered') return
  const said = await realism.answer({ preset, body }, ask)
  if (verdict.dropReply) return incoming.socket.destroy()
  sayJson(answer, said)
}

const refuse = (answer: ServerResponse, detail: string): void => {
  answer.writeHead(403, { 'content-type': 'application/json', connection: 'close' })
  answer.end(JSON.stringify({ error: { code: -32601, message: detail }, detail }))
}

/** A line that both sides may speak on at any time: joined as it is, and not looked into. */
const joinPlain = (place: Place, incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
  const onward = connect(place.port, place.host)
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
export const startProxy = async ({
  wish,
  dial,
  target,
  before,
  refuses,
  realism,
  records,
  join = joinPlain,
}: Options): Promise<Listening> => {
  const agent = new Agent({ keepAlive: true })
  const handle = async (incoming: IncomingMessage, answer: ServerResponse) => {
    const body = await bodyOf(incoming)
    const reason = refuses?.(incoming, body)
    if (reason !== undefined) return refuse(answer, reason)
    // Undisturbed requests are not looked into.
    const verdict = dial.isSet() ? await meetFault(dial, incoming, answer, body) : undisturbed
    if (verdict.now === 'answered') return
    const waiting = before?.()
    if (waiting) await waiting
    const place = target()
    const preset = dial.preset()
    if (place === undefined) return incoming.socket.destroy()
    const delivery = { agent, place, incoming, body }
    const ask = recordedBy(records, (text, headers) => askPlain(delivery, text, headers))
    const isRecorded = records?.isChange(body.toString()) === true
    if (verdict.dropReply && isRecorded) {
      await ask(body.toString())
      incoming.socket.destroy()
    } else if (verdict.dropReply) passAndDrop(delivery)
    else if (preset && realism && incoming.method === 'POST')
      await misbehave({ delivery, preset, realism, ask }, answer)
    else if (isRecorded) sayJson(answer, await ask(body.toString()))
    else pass(delivery, answer)
  }
  const listening = await listen(
    (incoming, answer) => void handle(incoming, answer).catch(() => incoming.socket.destroy()),
    { wish },
    (incoming, socket, head) => {
      socket.on('error', () => {})
      const place = target()
      if (place === undefined) socket.destroy()
      else join(place, incoming, socket, head)
    },
  )
  return {
    port: listening.port,
    close: async () => {
      agent.destroy()
      await listening.close()
    },
  }
}
