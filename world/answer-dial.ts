import { type Fields, HttpError, numberField, type Route, rejectUnknownFields, textField } from './router.ts'

/** Faults of a service whose answers are well-formed and wrong: absent fields, old answers, false ones. */
export type AnswerDial = {
  /** The answer about one subject, computed from the chain unless an old one is due. */
  answer: (subject: string, compute: () => Promise<Answer>) => Promise<Answer>
  routes: (prefix: string) => Route[]
}
export type Answer = { status: number; body: Fields }

const fieldsMax = 50
const subjectsMax = 1_000
const staleSecondsMax = 30 * 86_400

export const createAnswerDial = (nowMs: () => number): AnswerDial => {
  let absent: readonly string[] = []
  let staleMs = 0
  const merged = new Map<string, Fields>()
  const computed = new Map<string, { answer: Answer; atMs: number }>()

  const current = async (subject: string, compute: () => Promise<Answer>): Promise<Answer> => {
    const known = computed.get(subject)
    if (known && nowMs() - known.atMs < staleMs) return known.answer
    const answer = await compute()
    if (computed.size >= subjectsMax) computed.clear()
    computed.set(subject, { answer, atMs: nowMs() })
    return answer
  }

  const state = () => ({ absent, stale_seconds: staleMs / 1000, merged: Object.fromEntries(merged) })

  const change = (fields: Fields) => {
    rejectUnknownFields(fields, ['absent', 'stale_seconds', 'subject', 'merge'])
    if (fields.absent !== undefined) {
      const names = fields.absent
      if (
        !Array.isArray(names) ||
        names.length > fieldsMax ||
        !names.every((each) => typeof each === 'string')
      )
        throw new HttpError(400, `absent must be a list of at most ${fieldsMax} names.`)
      absent = names
    }
    if (fields.stale_seconds !== undefined)
      staleMs = numberField(fields, 'stale_seconds', 0, staleSecondsMax) * 1000
    if (fields.merge !== undefined) {
      const { merge } = fields
      if (typeof merge !== 'object' || merge === null || Array.isArray(merge))
        throw new HttpError(400, 'merge must be a JSON object.')
      if (merged.size >= subjectsMax) throw new HttpError(400, 'Too many answers are changed.')
      merged.set(textField(fields, 'subject').toLowerCase(), merge as Fields)
    }
    return state()
  }

  const reset = () => {
    absent = []
    staleMs = 0
    merged.clear()
    computed.clear()
    return state()
  }

  return {
    answer: async (subject, compute) => {
      const { status, body } = await current(subject, compute)
      const changed: Fields = { ...body, ...merged.get(subject.toLowerCase()) }
      for (const name of absent) delete changed[name]
      return { status, body: changed }
    },
    routes: (prefix) => {
      const path = new RegExp(`^${prefix}/answers$`)
      return [
        { method: 'GET', path, run: state },
        { method: 'PUT', path, run: ({ fields }) => change(fields) },
        { method: 'DELETE', path, run: reset },
      ]
    },
  }
}
