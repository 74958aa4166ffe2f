import type { RateLimits } from '#invoke/rate-limits.ts'
import type { WebRequest, WebRoute } from '#invoke/web-route.ts'
import { createKeyCounts } from '#kernel/async/key-counts.ts'
import type { Caller } from '#kernel/contract/caller.ts'
import { budgetSpent, Fault } from '#kernel/contract/fault.ts'
import { idOf } from './message-cost.ts'
import { isSecret, mailboxIdOf, newSecret, seal, unseal } from './sealed-message.ts'
import { type Selection, selectionQuery } from './tool-selection.ts'

/**
 * Serves the HTTP+SSE transport of the MCP revision of 2024: a client gets all answers through one stream, and sends
 * each message in an HTTP request of its own. Any instance answers a message, as at `/mcp`; the answer goes through a
 * mailbox to the instance that has the stream.
 */

export type Known = {
  caller: Caller
  authorization: string | undefined
  principal: string
  selection: Selection
}
type Mailbox = { messages(signal: AbortSignal): AsyncIterable<Uint8Array> } & AsyncDisposable
export type Mailboxes = {
  open(id: string, userId: string): Promise<Mailbox | undefined>
  isOpen(id: string, userId: string): Promise<boolean>
  send(id: string, sealed: Uint8Array): Promise<boolean>
}
type SseDeps = {
  mailboxes: Mailboxes
  limits: RateLimits
  admit(request: WebRequest): Promise<Known>
  answer(request: WebRequest, body: unknown, known: Known): Promise<Response>
  refuseBody: WebRoute<Known>['refuseBody']
  onError(error: unknown): void
}

const bodyBytesMax = 1024 * 1024
const requestsPerUser = 64
/** The longest time for an answer, which is longer than any call waits. */
const answerMsMax = 120_000
const messagesPath = '/mcp/messages'

export function createSseTransport({ mailboxes, limits, admit, answer, refuseBody, onError }: SseDeps) {
  const closing = new AbortController()
  const answering = new Set<Promise<void>>()
  const requests = createKeyCounts()

  const openStream: WebRoute<Known>['answer'] = async ({ signal, url }, _body, { caller, principal }) => {
    const { fault } = await limits.consume('stream', principal)
    if (fault) throw fault
    const secret = newSecret()
    const mailbox = await mailboxes.open(mailboxIdOf(secret), caller.userId)
    if (!mailbox) throw tooMany('sessions')
    const path = `${messagesPath}?session_id=${secret}${selectionQuery(url).replace('?', '&')}`
    return streamOf(mailbox, { secret, path }, AbortSignal.any([signal, closing.signal]))
  }

  const takeMessage: WebRoute<Known>['answer'] = async (request, body, known) => {
    const { userId } = known.caller
    const secret = new URL(request.url, 'http://host').searchParams.get('session_id') ?? ''
    const id = mailboxIdOf(secret)
    // A closed session and a session of another user get the same answer.
    if (!isSecret(secret) || !(await mailboxes.isOpen(id, userId)))
      throw (await limits.consume('read', known.principal)).fault ?? noSession()
    if (requests.get(userId) >= requestsPerUser)
      throw (await limits.consume('read', known.principal)).fault ?? tooMany('requests')
    requests.add(userId)
    const work = forward(request, body, known, (text) => mailboxes.send(id, seal(secret, text)))
      .catch(onError)
      .finally(() => {
        requests.remove(userId)
        answering.delete(work)
      })
    answering.add(work)
    return new Response('Accepted', { status: 202, headers: { 'content-type': 'text/plain' } })
  }

  /** Answers a request as `/mcp` does, whatever its client accepts; the work outlasts the request's connection. */
  async function forward(
    { address, id, headers: { host } }: WebRequest,
    body: unknown,
    known: Known,
    send: (text: string) => Promise<boolean>,
  ): Promise<void> {
    const request: WebRequest = {
      method: 'POST',
      url: '/mcp',
      headers: { host, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      id,
      address,
      signal: AbortSignal.any([closing.signal, AbortSignal.timeout(answerMsMax)]),
    }
    const response = await answer(request, body, known).catch((error: unknown) => refusalOf(body, error))
    for await (const text of messagesIn(response)) if (!(await send(text))) return
  }

  const common = { bodyBytesMax, admit, refuseBody }
  const routes: WebRoute<Known>[] = [
    { ...common, path: '/mcp/sse', methods: ['GET'], answer: openStream },
    { ...common, path: messagesPath, methods: ['POST'], answer: takeMessage },
  ]
  return {
    routes: routes as WebRoute[],
    async close() {
      closing.abort()
      await Promise.all(answering)
    },
  }
}

const noSession = (): Fault =>
  new Fault('not_found', 'There is no such session: open a new one with GET /mcp/sse')

const tooMany = (budget: string): Fault =>
  budgetSpent('rate_limited', `This user has too many open ${budget} of MCP: close one of them first`, {
    budget: `mcp_${budget}`,
    owner: 'user',
    retryAfterSeconds: 1,
  })

/** Returns a fault as a JSON-RPC error. Any other error is a bug and is thrown, so that the caller logs it. */
function refusalOf(body: unknown, error: unknown): Response {
  if (!(error instanceof Fault)) throw error
  const id = idOf(body)
  const data = { code: error.code, retryable: error.retryable, ...error.extras }
  return Response.json({ jsonrpc: '2.0', id, error: { code: -32_000, message: error.message, data } })
}

/** Takes a message from the mailbox when the reader has taken the previous one. */
/** The secret of a session, and the path to which its client sends messages. */
type Session = { secret: string; path: string }

function streamOf(mailbox: Mailbox, session: Session, signal: AbortSignal): Response {
  const encoder = new TextEncoder()
  const frames = framesOf(mailbox, session, signal)
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value, done } = await frames.next()
        if (done) controller.close()
        else controller.enqueue(encoder.encode(value))
      },
      cancel: async () => void (await frames.return(undefined)),
    },
    { highWaterMark: 0 },
  )
  return new Response(stream, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
    },
  })
}

async function* framesOf(
  mailbox: Mailbox,
  { secret, path }: Session,
  signal: AbortSignal,
): AsyncGenerator<string, undefined> {
  try {
    yield `event: endpoint\ndata: ${path}\n\n`
    for await (const sealed of mailbox.messages(signal))
      yield `event: message\ndata: ${unseal(secret, sealed)}\n\n`
  } finally {
    await Promise.resolve(mailbox[Symbol.asyncDispose]()).catch(() => undefined)
  }
}

/** Yields each JSON-RPC message of an answer, which is one JSON body or the events of a stream. */
async function* messagesIn(response: Response): AsyncIterable<string> {
  const type = response.headers.get('content-type') ?? ''
  if (!response.body) return
  if (!type.startsWith('text/event-stream')) {
    const text = await response.text()
    if (text !== '') yield text
    return
  }
  let rest = ''
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    // The data of each message is on one line of JSON; an event with empty data only opens the stream.
    for (const line of lines) if (line.startsWith('data: {')) yield line.slice('data: '.length)
  }
}
