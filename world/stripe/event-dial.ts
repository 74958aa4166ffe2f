import { type Fields, HttpError, numberField, type Route, rejectUnknownFields } from '#world/router.ts'

/** How events are delivered: as the control port says, for all origins or for one. */

export type Dial = {
  /** Further deliveries of each event. */
  duplicates: number
  reorder: boolean
  delaySeconds: number
  drop: boolean
  forged: boolean
  changed: boolean
  old: boolean
  future: boolean
  live: boolean
}
export const honest: Dial = {
  duplicates: 0,
  reorder: false,
  delaySeconds: 0,
  drop: false,
  forged: false,
  changed: false,
  old: false,
  future: false,
  live: false,
}
export const lies = ['forged', 'changed', 'old', 'future', 'live'] as const
const duplicatesMax = 200
const delaySecondsMax = 86_400

type DialDeps = {
  dials: Map<string, Dial>
  delivered: ReadonlyMap<string, object>
  pending: () => number
}

const flag = (fields: Fields, name: string): boolean => {
  const value = fields[name]
  if (value === undefined) return false
  if (typeof value === 'boolean') return value
  throw new HttpError(400, `${name} must be true or false.`)
}

const originOf = (fields: Fields): string => {
  const { origin } = fields
  if (origin === undefined) return ''
  if (typeof origin === 'string' && URL.canParse(origin)) return new URL(origin).origin
  throw new HttpError(400, 'origin must be an address.')
}

export function dialRoutes({ dials, delivered, pending }: DialDeps): Route[] {
  const path = /^\/stripe\/events$/
  const state = () => ({
    dials: Object.fromEntries(dials),
    delivered: Object.fromEntries(delivered),
    pending: pending(),
  })
  return [
    { method: 'GET', path, run: state },
    {
      method: 'PUT',
      path,
      run: ({ fields }) => {
        rejectUnknownFields(fields, ['origin', 'duplicates', 'reorder', 'delay_seconds', 'drop', ...lies])
        dials.set(originOf(fields), {
          duplicates: Math.trunc(numberField({ duplicates: 0, ...fields }, 'duplicates', 0, duplicatesMax)),
          delaySeconds: numberField({ delay_seconds: 0, ...fields }, 'delay_seconds', 0, delaySecondsMax),
          reorder: flag(fields, 'reorder'),
          drop: flag(fields, 'drop'),
          forged: flag(fields, 'forged'),
          changed: flag(fields, 'changed'),
          old: flag(fields, 'old'),
          future: flag(fields, 'future'),
          live: flag(fields, 'live'),
        })
        return state()
      },
    },
    {
      method: 'DELETE',
      path,
      run: () => {
        dials.clear()
        return state()
      },
    },
  ]
}
