import { createInterface } from 'node:readline'
import { portico } from '#sdk/client.ts'
import { createTokenSource, type TokenSource } from '#sdk/token-source.ts'
import { connectionOf } from './credentials.ts'
import { exitCodes } from './exit-codes.ts'
import type { Options } from './operation-input.ts'
import { type Terminal, UsageError } from './terminal.ts'

/**
 * `portico mcp` is an MCP server on standard input and output, for clients that start a command. It passes each message
 * to the gateway, under a token that it renews by the stored key or the sign-in of a person.
 */

type Json = Record<string, unknown>
type Id = string | number
type Message = { json: Json; line: string; signal: AbortSignal }

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isId = (id: unknown): id is Id => typeof id === 'string' || typeof id === 'number'
const paramsOf = ({ params }: Json): Json => (isObject(params) ? params : {})

/** At most this many messages are under way; the next line is read once one of them has its answer. */
const messagesMax = 64

export async function mcpBridge(terminal: Terminal, options: Options): Promise<number> {
  const { input } = terminal
  if (!input) throw new UsageError('There is no standard input to read messages from')
  const write = (text: string) => terminal.out(`${text.replace(/[\r\n]+/g, ' ')}\n`)
  const forward = createForwarding(targetOf(terminal, options), write)
  const underway = new Map<Id, AbortController>()
  const endless = new Set<AbortController>()
  const working = new Set<Promise<void>>()

  const take = async (line: string): Promise<void> => {
    const json = parsed(line)
    if (!json) return write(errorText(null, -32_700, 'A line has to be one JSON-RPC message'))
    // The gateway keeps no session, so a request is cancelled by closing its connection.
    const { requestId } = paramsOf(json)
    if (json.method === 'notifications/cancelled')
      return isId(requestId) ? underway.get(requestId)?.abort() : undefined
    const { id } = json
    const leaving = new AbortController()
    if (isId(id)) underway.set(id, leaving)
    if (json.method === 'subscriptions/listen') endless.add(leaving)
    try {
      await forward({ json, line, signal: AbortSignal.any([leaving.signal, terminal.signal]) })
    } finally {
      endless.delete(leaving)
      if (isId(id) && underway.get(id) === leaving) underway.delete(id)
    }
  }

  const lines = createInterface({ input })
  terminal.signal.addEventListener('abort', () => lines.close(), { once: true })
  for await (const line of lines) {
    if (line.trim() === '') continue
    const work: Promise<void> = take(line).finally(() => working.delete(work))
    working.add(work)
    if (working.size >= messagesMax) await Promise.race(working)
  }
  for (const stream of endless) stream.abort()
  await Promise.all(working)
  return exitCodes.success
}

type Target = { url: string; tokens: TokenSource }

function targetOf(terminal: Terminal, { baseUrl: given, sections, mode }: Options): Target {
  const { baseUrl, auth } = connectionOf(terminal, typeof given === 'string' ? given : undefined)
  if (!auth)
    throw new UsageError(
      `This machine has no credentials for ${baseUrl}: portico init makes a key, portico login signs a person in`,
    )
  const query = new URLSearchParams()
  if (typeof sections === 'string') query.set('sections', sections)
  if (typeof mode === 'string') query.set('mode', mode)
  const client = portico({ baseUrl, maxRetries: 0 })
  return {
    url: `${baseUrl}/mcp${query.size === 0 ? '' : `?${query}`}`,
    tokens: createTokenSource(auth, (request) => client.auth.token(request)),
  }
}

type Forward = (message: Message) => Promise<void>

function createForwarding({ url, tokens }: Target, write: (text: string) => void): Forward {
  /** The revision that the handshake of a client of 2025 has agreed on. */
  let revision: string | undefined
  const post = (token: string, { json, line, signal }: Message): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headersOf(json, revision),
      },
      body: line,
      signal,
    })
  const send = async (message: Message): Promise<Response> => {
    const token = await tokens.get()
    const reply = await post(token, message)
    if (reply.status !== 401) return reply
    const renewed = await tokens.renew(token)
    return renewed === undefined ? reply : post(renewed, message)
  }
  return async (message) => {
    const { json, signal } = message
    const id = isId(json.id) ? json.id : undefined
    try {
      const reply = await send(message)
      if (!reply.ok) return id === undefined ? undefined : write(await refusalText(id, reply))
      for await (const text of messagesIn(reply)) {
        const result = json.method === 'initialize' ? parsed(text)?.result : undefined
        if (isObject(result) && typeof result.protocolVersion === 'string') revision = result.protocolVersion
        write(text)
      }
    } catch (error) {
      if (id === undefined || signal.aborted) return
      // A lost reply is not asked for again: the call may have moved money.
      const why = error instanceof Error ? error.message : String(error)
      write(
        errorText(
          id,
          -32_000,
          `The gateway gave no answer (${why}). Repeat a call that moves money under the same idempotency_key alone`,
        ),
      )
    }
  }
}

const revisionKey = 'io.modelcontextprotocol/protocolVersion'
/** The parameter that revision 2026-07-28 repeats in the header `Mcp-Name`. */
const nameFields: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/** Over HTTP a message repeats in its headers what the gateway compares with the body. */
function headersOf(json: Json, revision: string | undefined): Record<string, string> {
  const params = paramsOf(json)
  const own = isObject(params._meta) ? params._meta[revisionKey] : undefined
  if (typeof own !== 'string') return revision === undefined ? {} : { 'mcp-protocol-version': revision }
  const method = String(json.method)
  const name = params[nameFields[method] ?? '']
  return {
    'mcp-protocol-version': own,
    ...(typeof json.method === 'string' && { 'mcp-method': method }),
    ...(typeof name === 'string' && { 'mcp-name': headerText(name) }),
  }
}

const headerText = (text: string): string =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?')
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`

function parsed(line: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const errorText = (id: Id | null, code: number, message: string, data?: object): string =>
  JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } })

/** Makes a JSON-RPC error of a refusal; one that is an error of the protocol already passes as it is. */
async function refusalText(id: Id, reply: Response): Promise<string> {
  const text = await reply.text()
  const body = parsed(text)
  if (body?.jsonrpc === '2.0') return text
  const { detail, ...data } = body ?? {}
  const message = typeof detail === 'string' ? detail : `The gateway answered ${reply.status}`
  return errorText(id, -32_000, message, {
    status: reply.status,
    ...data,
    ...(detail !== message && { detail }),
  })
}

/** Yields each JSON-RPC message of an answer, which is one JSON body or the events of a stream. */
async function* messagesIn(reply: Response): AsyncGenerator<string> {
  const isStream = reply.headers.get('content-type')?.startsWith('text/event-stream')
  if (!isStream || !reply.body) {
    const text = await reply.text()
    if (parsed(text)) yield text
    return
  }
  let rest = ''
  for await (const chunk of reply.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    // The data of each message is on one line of JSON; an event with empty data only opens the stream.
    for (const line of lines) if (line.startsWith('data: {')) yield line.slice('data: '.length)
  }
}
