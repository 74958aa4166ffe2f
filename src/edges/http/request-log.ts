import type { Log } from '#kernel/log.ts'

/** Query parameters that are never logged; headers and bodies are not logged at all. */
const secretNames = /^(?:authorization|x-backend-key)$|sig|secret|token|password|api_?key|code/i
/** Tokens, JWTs and signatures are also redacted by their form, under any name and as part of a path. */
const secretPatterns =
  /agt_[\w-]{43}|(?<![\w-])eyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?|(?:[\w+/-]|%2[bf]){80,}(?:=|%3d)*/gi
const traceForm = /^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/

/** These limits suffice to recognise a request; the rest is neither read nor logged. */
const pairsMax = 50
const urlLengthMax = 2_048

export function redactUrl(url: string): string {
  const isCut = url.length > urlLengthMax
  const shown = redactQuery(isCut ? completeParts(url.slice(0, urlLengthMax)) : url).replace(
    secretPatterns,
    '[redacted]',
  )
  return isCut ? `${shown}…` : shown
}

/** Removes the part in which a URL was cut off: half of a token would not be recognised and redacted. */
const completeParts = (cut: string): string =>
  cut.slice(0, Math.max(cut.lastIndexOf('/'), cut.lastIndexOf('?'), cut.lastIndexOf('&')) + 1)

function redactQuery(url: string): string {
  const mark = url.indexOf('?')
  if (mark < 0) return url
  const pairs = url.slice(mark + 1).split('&', pairsMax)
  const shown = pairs.map((pair) => {
    const [name = ''] = pair.split('=', 1)
    return secretNames.test(decodeName(name)) ? `${name}=[redacted]` : pair
  })
  return `${url.slice(0, mark)}?${shown.join('&')}`
}

/** Decodes a parameter name, so that percent-encoding does not hide a secret parameter from the redaction. */
function decodeName(name: string): string {
  try {
    return decodeURIComponent(name)
  } catch {
    return 'token'
  }
}

export const traceIdOf = (traceparent: unknown): string | undefined =>
  typeof traceparent === 'string' ? traceForm.exec(traceparent)?.[1] : undefined

export type RequestLine = {
  /** The request id has the same name in the log as in answers, so that one search finds both. */
  request_id: string
  method: string
  route: string
  url: string
  status: number
  ms: number
  address: string
  agent_id: string | undefined
  trace_id: string | undefined
  left: boolean
}

/** Most loggers can say whether they would drop a line of a level. */
type LeveledLog = Log & { isLevelEnabled?: (level: string) => boolean }

const levelOf = (status: number): 'warn' | 'info' => (status >= 500 ? 'warn' : 'info')

/** Returns whether the log prints requests of this status, so that a line is built only if it is printed. */
export const isRequestLogged = (log: LeveledLog, status: number): boolean =>
  log.isLevelEnabled?.(levelOf(status)) !== false

export function logRequest(log: Log, { url, ms, agent_id, trace_id, left, ...line }: RequestLine): void {
  const facts = {
    ...line,
    url: redactUrl(url),
    ms: Math.round(ms * 10) / 10,
    ...(agent_id !== undefined && { agent_id }),
    ...(trace_id !== undefined && { trace_id }),
    ...(left && { left }),
  }
  log[levelOf(line.status)](facts, 'request')
}
