import { mutationsOf } from './mutation.ts'

const plans = ['src/engines/strategy-slots/plan-slots.test.ts']
const slots = ['test/durable/strategy-slots.test.ts']
const calendars = ['src/features/schedules/recurrence/slots.test.ts']
const outcomes = ['src/features/schedules/run-outcome.test.ts']
const approvals = ['src/features/schedules/standing-approval.test.ts']
const runs = ['test/chat/schedule-runs.test.ts']
const records = ['test/chat/run-records.test.ts']
const journeys = ['test/journeys/schedules.test.ts']

/** Schedules: each slot once, by its version and in the name of its caller, and what its record says. */
export const scheduleMutations = [
  ...mutationsOf('src/engines/strategy-slots/plan-slots.ts', plans, [
    [
      'while (next && next <= now) {',
      'while (next && next < now) {',
      'a slot that is due is served a slot late',
    ],
    [
      'if (due.isRunning) return { overlap: slot, ...skipped, ...following }',
      '',
      'a slot runs beside the run before it',
    ],
    ['Math.max(punctualMs, lateMsMax)', 'lateMsMax', 'a slot without catching up is lost in a restart'],
  ]),
  ...mutationsOf('src/engines/strategy-slots/strategy-slots.ts', slots, [
    [
      'deps.taskEngine.kindOf(runKindName)\n      ?',
      'true\n      ?',
      'an instance without the kind takes slots that it cannot run',
    ],
    [
      'settle: (tx, strategyId) => serveBeforeChange(deps, tx, strategyId, { mayRun: true }),',
      'settle: async () => {},',
      'a slot that is due before an edit runs by the version after it',
    ],
    ['s.tz_version < $1 and', 's.tz_version <> $1 and', 'an older process moves slots back'],
  ]),
  ...mutationsOf('src/features/schedules/recurrence/slots.ts', calendars, [
    ['if (slot <= last) continue', 'if (slot < last) continue', 'two times within a gap run twice'],
    [
      'if (!isGrid) return minutes.map((minute) => firstInstant(zoned, day + minute * minuteMs))',
      '',
      'a time runs twice in the hour that the clock repeats',
    ],
  ]),
  ...mutationsOf('src/features/schedules/run-outcome.ts', outcomes, [
    ["if (started.some(isOpen)) return 'unknown'", '', 'a run says what came of an order that is open'],
    ['row.length === troublesMax && row.every', 'row.every', 'one empty wallet pauses a schedule'],
  ]),
  ...mutationsOf('src/features/schedules/standing-approval.ts', approvals, [
    ['new Date(approvedUntil) > now', 'true', 'an approval lasts for ever'],
    ['approvedTerms === termsHash(row, access)', 'true', 'an approval outlives the person who gave it'],
  ]),
  ...mutationsOf('src/features/schedules/run-caller.ts', runs, [
    [
      "if (await deps.isPaused(run.user_id)) return skipped('frozen', 'trading_paused', 'A kill switch is set')",
      '',
      'a run begins although a kill switch is set',
    ],
    [
      "if (await store.hasOlderRun(db, run)) return skipped('overlap', 'conflict', 'An earlier run has not ended')",
      '',
      'a run begins beside an earlier one',
    ],
  ]),
  ...mutationsOf('src/features/schedules/record-run-end.ts', runs, [
    [
      'if (chatId !== null) await deps.cancelNotSent(run.user_id, [chatId], { tx })',
      '',
      'the chat of a run that has ended goes on',
    ],
  ]),
  ...mutationsOf('src/features/schedules/record-run-end.ts', records, [
    [
      "status === 'active' && version === run.version && at?.getTime() === run.activated_at?.getTime()",
      "run.strategy_status === 'active'",
      'the end of a run pauses what its user has disabled or activated anew',
    ],
    ['if (hasSlot(run)) await', 'await', 'a run by hand counts as a run of a slot'],
  ]),
  ...mutationsOf('src/features/schedules/run-task-store.ts', records, [
    ['b.run_count + $2 >= v.max_runs', 'b.run_count >= v.max_runs', 'a schedule runs once more than it may'],
  ]),
  ...mutationsOf('src/features/schedules/activation.ts', journeys, [
    ['assertVersion(row, expected_version)', '', 'another version than the one that was seen is activated'],
    ['if (active >= activeMax)', 'if (active > activeMax)', 'a user has one active schedule too many'],
  ]),
]
