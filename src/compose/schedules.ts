import { readTask } from '#durable/task/task-queries.ts'
import { toTaskBrief } from '#durable/task/task-view.ts'
import type { Files } from '#engines/files/files.ts'
import { authorityOf } from '#engines/stored-callers/stored-caller.ts'
import { strategyRetentionJobs } from '#engines/strategy-slots/strategy-run-retention.ts'
import { createStrategySlots } from '#engines/strategy-slots/strategy-slots.ts'
import type { Auth } from '#features/auth/auth.ts'
import { creditsOfAgent } from '#features/chat/credits-per-turn.ts'
import { orderedOperations } from '#features/chat/grammar-mandate.ts'
import { findThread } from '#features/chat/store.ts'
import type { Credits } from '#features/credits/credits.ts'
import type { Calendar } from '#features/schedules/recurrence/calendar-types.ts'
import { nextSlot } from '#features/schedules/recurrence/slots.ts'
import { skippedEvents } from '#features/schedules/run-events.ts'
import { scheduleFacts } from '#features/schedules/schedule-schemas.ts'
import { createSchedules } from '#features/schedules/schedules.ts'
import { createLoopTurns } from '#kernel/async/event-loop-turns.ts'
import { notFound } from '#kernel/contract/fault.ts'
import { isScope, type Operation } from '#kernel/contract/operation.ts'
import { internalKey } from '#kernel/task/idempotency-key.ts'
import { createScheduleRuns } from './schedule-runs.ts'
import { createStrategyPort } from './schedule-strategies.ts'
import type { Section } from './section.ts'
import type { Parts } from './section-parts.ts'
import type { openStrategies } from './strategies.ts'

type ScheduleParts = Pick<
  Parts,
  'core' | 'scheduleClock' | 'custody' | 'universe' | 'innerCalls' | 'venue'
> & {
  credits: Credits
  auth: Pick<Auth, 'holdAccess'>
  files: Files
  operations: () => readonly Operation[]
  strategies: ReturnType<typeof openStrategies>
}

/** Opens scheduled chats: their operations, the slots that are due, and the runs of these slots. */
export function openSchedules({ core, scheduleClock: clock, custody, ...parts }: ScheduleParts): Section {
  const { db, random, transactions, taskEngine } = core
  const { auth, credits, files, innerCalls, operations, strategies, universe, venue } = parts
  const inTurn = createLoopTurns()
  const sizeDecimals = async () => {
    const list = await venue?.client.perps().catch(() => undefined)
    return list && Object.fromEntries(list.markets.map((market) => [market.symbol, market.sizeDecimals]))
  }
  const slots = createStrategySlots({
    transactions,
    taskEngine,
    taskClock: core.clock,
    clock,
    random,
    skipEvents: skippedEvents,
    nextSlot: (calendar, after) => nextSlot(calendar as Calendar, after),
    tzVersion: process.versions.tz ?? 'unknown',
  })
  return {
    part: 'chat',
    operations: createSchedules({
      db,
      clock,
      random,
      files,
      slots,
      taskEngine,
      tasks: taskEngine.tasks,
      taskBrief: async (on, id) => toTaskBrief(await readTask(on, id)),
      calls: innerCalls,
      keyOf: (name) => internalKey('sched', name),
      authorityOf,
      holdAccess: auth.holdAccess,
      acts: taskEngine.approvals,
      taskClock: core.clock,
      strategies: createStrategyPort({
        core,
        custody,
        venue,
        ...(strategies && { startExit: strategies.startExit }),
      }),
      assetNames: async () => (await universe()).registry.names,
      creditsPerRun: (agent) => Number(creditsOfAgent[agent]),
      async factsOf(userId) {
        const [available, limits, decimals] = await Promise.all([
          credits.available(userId),
          custody.policy.summary(userId),
          sizeDecimals(),
        ])
        return {
          credits: available,
          chatPerDayUsd: limits.chat_per_day_usd,
          perTransactionUsd: limits.per_transaction_usd,
          approvalAboveUsd: limits.approval_above_usd,
          ...(decimals && { sizeDecimals: decimals }),
        }
      },
      async orderedBy(userId, text) {
        const { registry } = await universe()
        await inTurn(userId)
        return orderedOperations(text, clock.now().getTime(), registry)
      },
      async assertThread(userId, threadId) {
        if (!(await findThread(db, userId, threadId))) throw notFound('thread', 'chat_threads')
      },
      scopeOf(name) {
        const access = operations().find((operation) => operation.name === name)?.entry.access
        return access !== undefined && isScope(access) ? access : undefined
      },
    }),
    kinds: [
      createScheduleRuns({
        core,
        scheduleClock: clock,
        custody,
        files,
        operations,
        slots,
        runner: strategies?.runner,
      }),
    ],
    starters: [slots.start],
    jobs: [slots.zoneDataJob, ...strategyRetentionJobs(db, core.clock)],
    facts: scheduleFacts,
  }
}
