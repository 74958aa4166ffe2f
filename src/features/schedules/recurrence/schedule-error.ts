import type { Refusal } from './calendar-types.ts'

export const examples = [
  'every Monday at 09:00 New York time',
  'every 15 minutes from 9 to 17 on weekdays',
  'tomorrow at 7am Europe/Berlin',
]

type Details = Pick<Refusal, 'field' | 'type' | 'msg'> & { ctx?: Partial<Refusal['ctx']> }

/** Thrown to end the reading of an input; `readSchedule` catches this error and returns its refusal. */
export class ScheduleError extends Error {
  readonly refusal: Refusal

  constructor({ field, type, msg, ctx }: Details) {
    super(msg)
    this.refusal = { field, type, msg, ctx: { examples, ...ctx } }
  }
}

/** Returns the error for words or cron fields that are not understood. */
export const notUnderstood = (msg: string, ctx: Partial<Refusal['ctx']> = {}): ScheduleError =>
  new ScheduleError({ field: 'schedule', type: 'not_understood', msg, ctx: { unread: [], ...ctx } })

export const neverFires = (msg: string): ScheduleError =>
  new ScheduleError({ field: 'schedule', type: 'never_fires', msg })
