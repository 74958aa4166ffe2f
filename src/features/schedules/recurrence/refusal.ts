import type { Refusal } from './calendar.ts'

export const examples = [
  'every Monday at 09:00 New York time',
  'every 15 minutes from 9 to 17 on weekdays',
  'tomorrow at 7am Europe/Berlin',
]

type Details = Pick<Refusal, 'field' | 'type' | 'msg'> & { ctx?: Partial<Refusal['ctx']> }

/** Ends the reading of an input; `readSchedule` returns it and throws none. */
export class ScheduleError extends Error {
  readonly refusal: Refusal

  constructor({ field, type, msg, ctx }: Details) {
    super(msg)
    this.refusal = { field, type, msg, ctx: { examples, ...ctx } }
  }
}

/** A schedule of words or cron fields that is not understood. */
export const notUnderstood = (msg: string, ctx: Partial<Refusal['ctx']> = {}): ScheduleError =>
  new ScheduleError({ field: 'schedule', type: 'not_understood', msg, ctx: { unread: [], ...ctx } })

export const neverFires = (msg: string): ScheduleError =>
  new ScheduleError({ field: 'schedule', type: 'never_fires', msg })
