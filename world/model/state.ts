import { type Fields, HttpError, type Route, rejectUnknownFields } from '#world/router.ts'
import { readScript } from './script.ts'
import { createScriptBook, type ScriptBook } from './script-book.ts'

/** What the control port sets and reads of the local model. */

type Settings = {
  /** Keys that are accepted; none: any request is. */
  keys: readonly string[]
  /** Fields of a request that are refused, as models without them do. */
  rejected_parameters: readonly string[]
  /** Whether a conversation has to end with words of a user or a result. */
  refuses_prefix: boolean
}
type RecordedRequest = { at_ms: number; interface: string; body: Fields | { omitted_characters: number } }
export type ModelState = {
  book: ScriptBook
  settings: Settings
  startedMs: number
  nowMs: () => number
  record: (format: string, body: Fields) => void
  requests: () => readonly RecordedRequest[]
  clearRequests: () => void
}

const requestsMax = 100
const requestCharactersMax = 64_000
const namesMax = 20
const nameCharactersMax = 200

const initialSettings: Settings = { keys: [], rejected_parameters: [], refuses_prefix: false }

export const createModelState = (nowMs: () => number): ModelState => {
  const requests: RecordedRequest[] = []
  return {
    book: createScriptBook(),
    settings: initialSettings,
    startedMs: nowMs(),
    nowMs,
    record: (format, body) => {
      const characters = JSON.stringify(body).length
      const stored = characters > requestCharactersMax ? { omitted_characters: characters } : body
      requests.push({ at_ms: nowMs(), interface: format, body: stored })
      if (requests.length > requestsMax) requests.shift()
    },
    requests: () => requests,
    clearRequests: () => {
      requests.length = 0
    },
  }
}

const names = (fields: Fields, name: string): readonly string[] => {
  const value = fields[name]
  const isList = Array.isArray(value) && value.length <= namesMax
  if (isList && value.every((each) => typeof each === 'string' && each.length <= nameCharactersMax))
    return value
  throw new HttpError(400, `${name} must be a list of at most ${namesMax} texts.`)
}

/** Scripts, settings and records of the local model. */
export const modelRoutes = (state: ModelState): Route[] => {
  const { book } = state
  const scripts = () => ({
    models: book.models(),
    scripts: book.all().map(({ name, contains, turns, repeat }) => ({
      name,
      model: `local-${name}`,
      ...(contains !== undefined && { contains }),
      turns: turns.length,
      repeat,
    })),
  })
  const settings = () => ({
    keys: state.settings.keys.length,
    rejected_parameters: state.settings.rejected_parameters,
    refuses_prefix: state.settings.refuses_prefix,
  })
  return [
    { method: 'GET', path: /^\/model\/scripts$/, run: scripts },
    {
      method: 'PUT',
      path: /^\/model\/scripts$/,
      run: ({ fields }) => {
        book.set(readScript(fields))
        return scripts()
      },
    },
    {
      method: 'DELETE',
      path: /^\/model\/scripts$/,
      run: ({ query }) => {
        const name = query.get('name')
        if (name === null) book.clear()
        else book.remove(name)
        return scripts()
      },
    },
    { method: 'GET', path: /^\/model\/settings$/, run: settings },
    {
      method: 'PUT',
      path: /^\/model\/settings$/,
      run: ({ fields }) => {
        rejectUnknownFields(fields, ['keys', 'rejected_parameters', 'refuses_prefix'])
        const { keys, rejected_parameters: rejected, refuses_prefix = state.settings.refuses_prefix } = fields
        if (typeof refuses_prefix !== 'boolean')
          throw new HttpError(400, 'refuses_prefix must be true or false.')
        state.settings = {
          keys: keys === undefined ? state.settings.keys : names(fields, 'keys'),
          rejected_parameters:
            rejected === undefined
              ? state.settings.rejected_parameters
              : names(fields, 'rejected_parameters'),
          refuses_prefix,
        }
        return settings()
      },
    },
    {
      method: 'DELETE',
      path: /^\/model\/settings$/,
      run: () => {
        state.settings = initialSettings
        return settings()
      },
    },
    { method: 'GET', path: /^\/model\/requests$/, run: () => ({ requests: state.requests() }) },
    {
      method: 'DELETE',
      path: /^\/model\/requests$/,
      run: () => {
        state.clearRequests()
        return { requests: [] }
      },
    },
  ]
}
