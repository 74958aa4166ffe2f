import type { Ledger } from '#durable/ledger/ledger.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { implement, type Operation } from '#kernel/contract/operation.ts'
import { creditsAsset } from '#kernel/money/credit-accounts.ts'
import type { Draw } from '#kernel/task/ledger-draw.ts'
import { externalAccount, type Tx } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import * as store from './bucket-store.ts'
import { type Bucket, liveBuckets, spendableAccounts, subAccountOf, totalOf } from './buckets.ts'
import { contract } from './contract.ts'
import { historyOf } from './history.ts'
import { packs } from './packs.ts'

const signupCredits = 200n
const signupMs = 14 * 86_400_000

type CreditsDeps = { db: Queryable; ledger: Ledger; clock: Clock }

export type Credits = {
  operations: Operation[]
  /** Grants the first credits, once per user, and returns their number. */
  grantSignup(tx: Tx, userId: string, now: Date): Promise<number>
  /** Returns the credits that the user can spend now, by origin, in the order of spending. */
  buckets(db: Queryable, userId: string): Promise<Bucket[]>
  available(userId: string, on?: Queryable): Promise<number>
  /** Draws the credits, and up to `max` if there are more, in the acceptance of a task. Refuses if there are fewer. */
  draw(userId: string, credits: bigint, reason: string, max?: bigint): Promise<Draw>
}

type ReadBuckets = Credits['buckets']

const createOperations = ({ db }: CreditsDeps, buckets: ReadBuckets): Operation[] =>
  implement(contract, {
    async available(_input, { userId }) {
      const live = await buckets(db, userId)
      const total = totalOf(live)
      return {
        credits_available: Number(total),
        credits_available_decimal: String(total),
        buckets: live.map((each) => ({
          kind: each.kind,
          credits: Number(each.credits),
          expires_at: each.expiresAt?.toISOString() ?? null,
        })),
      }
    },
    async history({ before, limit = 20 }, { userId }) {
      const { items, next } = await historyOf(db, userId, { before, limit })
      return { items, next_before: next }
    },
    async packs() {
      const rows = packs.map((each) => ({
        pack_id: each.packId,
        price_usd: each.priceUsd,
        credits: each.credits,
      }))
      return { packs: rows }
    },
  })

export function createCredits(deps: CreditsDeps): Credits {
  const { db, ledger, clock } = deps
  const buckets: ReadBuckets = async (queryable, userId) => {
    const subAccounts = await ledger.subAccounts(queryable, userId, creditsAsset)
    const expiries = await store.expiriesOf(queryable, userId)
    return liveBuckets(subAccounts, expiries, clock.now())
  }
  return {
    operations: createOperations(deps, buckets),
    async grantSignup(tx, userId, now) {
      const subAccount = subAccountOf('signup')
      await store.addExpiry(tx, userId, subAccount, later(now, signupMs))
      const credit = { owner: userId, asset: creditsAsset, subAccount }
      const move = {
        move: 'transfer' as const,
        key: `signup:${userId}`,
        debit: externalAccount(creditsAsset),
        credit,
        amountUnits: signupCredits,
        reason: 'signup credits',
      }
      await ledger.apply(tx, [move], { taskId: null, now })
      return Number(signupCredits)
    },
    buckets,
    async draw(userId, wanted, reason, max = wanted) {
      const expiries = await store.expiriesOf(db, userId)
      const now = clock.now()
      return {
        asset: creditsAsset,
        subAccounts: spendableAccounts(expiries, now),
        minUnits: wanted,
        maxUnits: max,
        reason,
        refuse: (available) => insufficientCredits(wanted, available),
      }
    },
    available: async (userId, on = db) => Number(totalOf(await buckets(on, userId))),
  }
}

const insufficientCredits = (required: bigint, available: bigint): Fault =>
  new Fault(
    'insufficient_credits',
    `This takes ${required} credits and ${available} are available: buy a pack with \`credits_recharge\`, or a plan with \`subscriptions_checkout\``,
    {
      extras: {
        required: Number(required),
        available: Number(available),
        missing: Number(required - available),
        packs_path: '/credits/packs',
      },
    },
  )
