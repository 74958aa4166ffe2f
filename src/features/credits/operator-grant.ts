import { defineTaskKind, type TaskKind } from '#kernel/task/task.ts'
import { purchasedCredits } from './buckets.ts'

/** An operator gives credits as a task of the user, so that they are booked once and appear in events and history. */

export const grantKind = 'credits_grant'

type GrantData = { credits: string; reason: string }

export const creditGrant: TaskKind = defineTaskKind<GrantData, 'book'>({
  kind: grantKind,
  version: 1,
  priority: 2,
  // The many attempts keep the credits from being lost in an outage of the database for hours.
  retry: { attemptsMax: 1_000, firstMs: 1_000, maxMs: 60_000 },
  steps: {
    book: async ({ id, userId, data: { credits, reason } }) => ({
      end: 'completed',
      outcome: 'executed',
      result: { credits: Number(credits), reason },
      moves: [
        purchasedCredits(userId, { key: `grant:${id}`, credits: BigInt(credits), reason: 'granted credits' }),
      ],
    }),
  },
})

export const grantAdmission = (data: GrantData) => ({ first: 'book' as const, data, deadlineMs: 86_400_000 })
