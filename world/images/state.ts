import { type Fields, HttpError, numberField, type Route, rejectUnknownFields } from '#world/router.ts'

/** What the control port sets and reads of the local image service. */

const mistakes = [
  'content_type',
  'oversized',
  'dead_url',
  'missing_image',
  'not_json',
  'wrong_bytes',
  'foreign_url',
] as const
export type Mistake = (typeof mistakes)[number]

export type ImageSettings = {
  /** Keys that are accepted; none: any request is. */
  keys: readonly string[]
  /** A well-formed answer that is wrong, for each following request. */
  mistake: Mistake | undefined
  /** The next requests are answered with the validation error of the service. */
  rejects: boolean
  /** Time that a picture takes at least. */
  latencyMs: number
  /** The address of `foreign_url`. */
  foreignUrl: string
}
type RecordedRequest = { at_ms: number; app: string; body: Fields }
export type ImageState = {
  settings: ImageSettings
  nowMs: () => number
  record: (app: string, body: Fields) => void
}

const requestsMax = 1_000
const keysMax = 20
const textMax = 2_000
const latencyMsMax = 600_000
const initial: ImageSettings = {
  keys: [],
  mistake: undefined,
  rejects: false,
  latencyMs: 0,
  foreignUrl: 'http://169.254.169.254/latest/meta-data',
}

const changed = (before: ImageSettings, fields: Fields): ImageSettings => {
  rejectUnknownFields(fields, ['keys', 'mistake', 'rejects', 'latency_ms', 'foreign_url'])
  const { keys = before.keys, mistake = before.mistake, rejects = before.rejects } = fields
  const { foreign_url: foreignUrl = before.foreignUrl } = fields
  if (!Array.isArray(keys) || keys.length > keysMax || !keys.every((key) => typeof key === 'string'))
    throw new HttpError(400, `keys must be a list of at most ${keysMax} texts.`)
  const known = mistakes.find((each) => each === mistake)
  if (mistake !== undefined && mistake !== null && !known)
    throw new HttpError(400, `mistake must be null or one of ${mistakes.join(', ')}.`)
  if (typeof rejects !== 'boolean') throw new HttpError(400, 'rejects must be true or false.')
  if (typeof foreignUrl !== 'string' || foreignUrl.length > textMax)
    throw new HttpError(400, 'foreign_url must be text.')
  const latencyMs =
    fields.latency_ms === undefined ? before.latencyMs : numberField(fields, 'latency_ms', 0, latencyMsMax)
  return { keys, mistake: known, rejects, latencyMs, foreignUrl }
}

export const createImageState = (nowMs: () => number): { state: ImageState; routes: Route[] } => {
  const requests: RecordedRequest[] = []
  const state: ImageState = {
    settings: initial,
    nowMs,
    record(app, body) {
      requests.push({ at_ms: nowMs(), app, body })
      if (requests.length > requestsMax) requests.shift()
    },
  }
  const shown = () => {
    const { keys, mistake, rejects, latencyMs } = state.settings
    return { keys: keys.length, mistake: mistake ?? null, rejects, latency_ms: latencyMs }
  }
  const routes: Route[] = [
    { method: 'GET', path: /^\/images\/settings$/, run: shown },
    {
      method: 'PUT',
      path: /^\/images\/settings$/,
      run: ({ fields }) => {
        state.settings = changed(state.settings, fields)
        return shown()
      },
    },
    {
      method: 'DELETE',
      path: /^\/images\/settings$/,
      run: () => {
        state.settings = initial
        return shown()
      },
    },
    { method: 'GET', path: /^\/images\/requests$/, run: () => ({ requests }) },
    {
      method: 'DELETE',
      path: /^\/images\/requests$/,
      run: () => {
        requests.length = 0
        return { requests }
      },
    },
  ]
  return { state, routes }
}
