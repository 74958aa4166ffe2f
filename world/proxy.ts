import {
  Agent,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from 'node:http'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import {
  drawConnectionFailure,
  type InjectionResult,
  injectFailure,
  injectNextFailure,
  readBody,
} from './fault-injection.ts'
import type { ActivePreset, FailureInjector } from './injected-failures.ts'
import { type ListeningServer, listen } from './listen.ts'

/** Address of a server of the world; not always the one that clients know. */
export type Endpoint = { host: string; port: number }

type Options = {
  preferredPort: number
  injector: FailureInjector
  /** Undefined while the server is down: the connection is then cut, as a closed port would. */
  target: () => Endpoint | undefined
  beforeRequest?: () => Promise<void> | undefined
  /** The reason to reject a request, if there is one. */
  rejectionReason?: (incoming: IncomingMessage, body: Buffer) => string | undefined
  /** Answers the request instead of the server while a preset is set. */
  realism?: Realism
  /** Records what changes the state of the server, and what its answers show of that. */
  recorder?: CallRecorder
  /** Handles a connection on which both sides may send at any time; without it the connection is passed through. */
  connectSocket?: (endpoint: Endpoint, incoming: IncomingMessage, socket: Duplex, head: Buffer) => void
}

type CallRecorder = {
  isChange: (body: string) => boolean
  record: (body: string, ask: (body: string) => Promise<string>) => Promise<string>
  recordShown: () => Promise<void> | undefined
}

type Request = { preset: ActivePreset; body: Buffer }

/** Changes answers and not the connection; `ask` reaches the server. */
export type Realism = {
  answer: (
    request: Request,
    ask: (body: string, headers?: Record<string, string>) => Promise<string>,
  ) => Promise<string>
}

const noFailure: InjectionResult = { type: 'forward', dropReply: false }

type ForwardedRequest = {
  agent: Agent
  endpoint: Endpoint
  incoming: IncomingMessage
  body: Buffer
  extraHeaders?: Record<string, string>
}

const forward = (
  forwarded: ForwardedRequest,
  onReply: (reply: IncomingMessage) => void,
  onError?: (error: Error) => void,
) => {
  const { agent, incoming, body, extraHeaders } = forwarded
  const { host, port } = forwarded.endpoint
  const headers: OutgoingHttpHeaders = { ...incoming.headers }
  delete headers['transfer-encoding']
  Object.assign(headers, extraHeaders)
  headers.host = `${host}:${port}`
  headers['content-length'] = String(body.length)
  const options = { agent, port, host, path: incoming.url, method: incoming.method, headers }
  const outgoing = request(options, onReply)
  // A node that dies during a call cuts the connection: a client must not read that as an answer.
  outgoing.once('error', (error) => {
    incoming.socket.destroy()
    onError?.(error)
  })
  outgoing.end(body)
}

const forwardAndReply = (
  forwarded: ForwardedRequest,
  recorder: CallRecorder | undefined,
  answer: ServerResponse,
) =>
  forward(forwarded, (reply) => {
    const pipeReply = () => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(answer)
    }
    reply.once('error', () => answer.destroy())
    const recording = recorder?.recordShown()
    if (recording) recording.then(pipeReply).catch(() => forwarded.incoming.socket.destroy())
    else pipeReply()
  })

/** Forwards the request, waits until the server has answered in full, and discards the answer. */
const forwardAndDropReply = (forwarded: ForwardedRequest) =>
  forward(forwarded, (reply) => {
    reply.resume()
    reply.once('close', () => forwarded.incoming.socket.destroy())
  })

const sendUpstream = (
  forwarded: Omit<ForwardedRequest, 'body'>,
  body: string,
  extraHeaders: Record<string, string> = {},
): Promise<string> =>
  new Promise((resolve, reject) =>
    forward(
      { ...forwarded, body: Buffer.from(body), extraHeaders },
      (reply) => {
        const chunks: Buffer[] = []
        reply.on('data', (chunk: Buffer) => chunks.push(chunk))
        reply.once('error', reject)
        reply.once('end', () => resolve(Buffer.concat(chunks).toString()))
      },
      reject,
    ),
  )

type SendUpstream = Parameters<Realism['answer']>[1]

const withRecording = (recorder: CallRecorder | undefined, plain: SendUpstream): SendUpstream => {
  if (!recorder) return plain
  return async (text, headers) => {
    if (recorder.isChange(text)) return recorder.record(text, (each) => plain(each, headers))
    const replyText = await plain(text, headers)
    await recorder.recordShown()
    return replyText
  }
}

const sendJson = (answer: ServerResponse, replyText: string) => {
  answer.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(replyText),
  })
  answer.end(replyText)
}

type RealisticRequest = {
  forwarded: ForwardedRequest
  preset: ActivePreset
  realism: Realism
  ask: SendUpstream
}

const answerRealistically = async (
  { forwarded, preset, realism, ask }: RealisticRequest,
  answer: ServerResponse,
) => {
  const { incoming, body } = forwarded
  const injection = await injectFailure(drawConnectionFailure(preset), incoming, answer)
  if (injection.type === 'answered') return
  const replyText = await realism.answer({ preset, body }, ask)
  if (injection.dropReply) return incoming.socket.destroy()
  sendJson(answer, replyText)
}

const sendForbidden = (answer: ServerResponse, detail: string): void => {
  answer.writeHead(403, { 'content-type': 'application/json', connection: 'close' })
  answer.end(JSON.stringify({ error: { code: -32601, message: detail }, detail }))
}

/** A connection on which both sides may send at any time: piped as it is, and not parsed. */
const tunnelSocket = (endpoint: Endpoint, incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
  const upstream = connect(endpoint.port, endpoint.host)
  upstream.on('error', () => socket.destroy())
  socket.once('close', () => upstream.destroy())
  upstream.once('close', () => socket.destroy())
  const lines = [`${incoming.method} ${incoming.url} HTTP/1.1`]
  for (let at = 0; at < incoming.rawHeaders.length; at += 2)
    lines.push(`${incoming.rawHeaders[at]}: ${incoming.rawHeaders[at + 1]}`)
  upstream.write(`${lines.join('\r\n')}\r\n\r\n`)
  upstream.write(head)
  upstream.pipe(socket).pipe(upstream)
}

/** A chain as clients see it: the node with its injected failures. */
export const startProxy = async ({
  preferredPort,
  injector,
  target,
  beforeRequest,
  rejectionReason,
  realism,
  recorder,
  connectSocket = tunnelSocket,
}: Options): Promise<ListeningServer> => {
  const agent = new Agent({ keepAlive: true })
  const handle = async (incoming: IncomingMessage, answer: ServerResponse) => {
    const body = await readBody(incoming)
    const reason = rejectionReason?.(incoming, body)
    if (reason !== undefined) return sendForbidden(answer, reason)
    // Undisturbed requests are not parsed.
    const injection = injector.isSet() ? await injectNextFailure(injector, incoming, answer, body) : noFailure
    if (injection.type === 'answered') return
    const waiting = beforeRequest?.()
    if (waiting) await waiting
    const endpoint = target()
    const preset = injector.preset()
    if (endpoint === undefined) return incoming.socket.destroy()
    const forwarded = { agent, endpoint, incoming, body }
    const ask = withRecording(recorder, (text, headers) => sendUpstream(forwarded, text, headers))
    const isRecorded = recorder?.isChange(body.toString()) === true
    if (injection.dropReply && isRecorded) {
      await ask(body.toString())
      incoming.socket.destroy()
    } else if (injection.dropReply) forwardAndDropReply(forwarded)
    else if (preset && realism && incoming.method === 'POST')
      await answerRealistically({ forwarded, preset, realism, ask }, answer)
    else if (isRecorded) sendJson(answer, await ask(body.toString()))
    else forwardAndReply(forwarded, recorder, answer)
  }
  const listening = await listen(
    (incoming, answer) => void handle(incoming, answer).catch(() => incoming.socket.destroy()),
    { preferredPort },
    (incoming, socket, head) => {
      socket.on('error', () => {})
      const connect = () => {
        const endpoint = target()
        if (endpoint === undefined) socket.destroy()
        else connectSocket(endpoint, incoming, socket, head)
      }
      const waiting = beforeRequest?.()
      if (waiting) waiting.then(connect, () => socket.destroy())
      else connect()
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
