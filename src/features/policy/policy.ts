import type { Transact } from '#durable/transactions.ts'
import type { Wallet } from '#features/wallets/store.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { Operation } from '#kernel/operation.ts'
import { type EvmIntent, intentHash, type Policy, type PolicyReceipt } from '#kernel/signer.ts'
import type { Queryable } from '#store/query.ts'
import { operations } from './operations.ts'
import { receipts } from './receipt.ts'
import * as rules from './rules.ts'
import * as store from './store.ts'

const receiptMs = 60_000

export type HouseLimits = {
  perTransactionMicros: bigint
  perDayMicros: bigint
  chains: readonly string[]
  /** null: any token. */
  tokens: readonly { chainId: string; address: string }[] | null
  /** Protocol contracts that may take money: vaults, depositories. */
  contracts: readonly { chainId: string; address: string }[]
}

export type PolicyNeeds = {
  on: Queryable
  transact: Transact
  clock: Clock
  random: Random
  house: HouseLimits
  walletsOf: (on: Queryable, userId: string) => Promise<Wallet[]>
}

export type PolicySummary = {
  per_transaction_usd: string
  per_day_usd: string
  remaining_24h_usd: string
  paused: boolean
}

export type PolicyFeature = {
  operations: Operation[]
  policy: Policy
  /** For custody: whether the receipt was made here. */
  genuine(receipt: PolicyReceipt): boolean
  summary(userId: string): Promise<PolicySummary>
  /** For the operator: the only way to switch off again, until a person can confirm it through a door. */
  setSwitch(id: store.SwitchId, on: boolean, setBy: string): Promise<void>
}

function raise(refusal: rules.Refusal | null): void {
  if (!refusal) return
  if (refusal.code === 'policy_denied') {
    const { code, ...extras } = refusal
    throw new Fault(code, `The policy refuses this: ${extras.reason}`, { extras })
  }
  const extras = { scope: refusal.scope, since: refusal.since.toISOString() }
  throw new Fault('trading_paused', 'Trading is paused by a kill switch', { extras })
}

const limitsOf = (house: HouseLimits): rules.Limits => {
  const place = (each: { chainId: string; address: string }) => rules.placeOf(each.chainId, each.address)
  const { perTransactionMicros, perDayMicros, chains } = house
  const tokens = house.tokens?.map(place) ?? null
  return { perTransactionMicros, perDayMicros, chains, tokens, recipients: house.contracts.map(place) }
}

/** What the intent says of itself, and what its spends say: both have to be allowed. */
const asksOf = (intent: EvmIntent): rules.Ask => ({
  ...intent,
  tokens: [...intent.tokens, ...intent.spends.map(({ token }) => token)],
  recipients: [...intent.recipients, ...intent.spends.map(({ spender }) => spender)],
})

export function policy(needs: PolicyNeeds): PolicyFeature {
  const { on, clock, random, walletsOf } = needs
  const house = limitsOf(needs.house)
  const made = receipts()
  const dayAgo = () => later(clock.now(), -rules.dayMs)

  type Asker = { userId: string; own: rules.Tightening; spentMicros: bigint }
  const standing = async (queryable: Queryable, { userId, own, spentMicros }: Asker) => ({
    limits: rules.narrow(house, own),
    house,
    ownAddresses: (await walletsOf(queryable, userId)).map(({ address }) => address),
    spentMicros,
    paused: await store.pauseOf(queryable, userId),
  })

  const engine: Policy = {
    async check(action) {
      const { userId } = action
      const { own } = await store.policyOf(on, userId)
      const spentMicros = await store.spentMicros(on, userId, dayAgo())
      raise(rules.judge(action, await standing(on, { userId, own, spentMicros })))
    },

    async reserve(tx, action) {
      const { userId, taskId } = action
      const now = clock.now()
      const { own } = await store.lockPolicy(tx, userId, now)
      const spentMicros = await store.spentMicros(tx, userId, dayAgo())
      raise(rules.judge(action, await standing(tx, { userId, own, spentMicros })))
      await store.addSpend(tx, { taskId, userId, usdMicros: rules.countedMicros(action), now })
    },

    async authorize(tx, intent) {
      const { userId, taskId } = intent
      const now = clock.now()
      const reserved = await store.lockSpend(tx, taskId, userId)
      if (!reserved) raise(rules.refuse('reservation', 'nothing is reserved for this task'))
      const { usd_micros: heldMicros, authorized_micros: beforeMicros } = reserved ?? {
        usd_micros: 0n,
        authorized_micros: 0n,
      }
      const micros = rules.countedMicros(intent)
      const authorizedMicros = beforeMicros + micros
      const beyond = authorizedMicros > heldMicros
      const takenMicros = beyond ? authorizedMicros : heldMicros
      const { own } = await (beyond ? store.lockPolicy(tx, userId, now) : store.policyOf(tx, userId))
      const othersMicros = await store.spentMicros(tx, userId, dayAgo(), taskId)
      const asker = { userId, own, spentMicros: othersMicros + takenMicros - micros }
      raise(rules.judge(asksOf(intent), await standing(tx, asker)))
      await store.saveSpend(tx, taskId, takenMicros, authorizedMicros)

      const id = uuidv7(now, random)
      const hash = intentHash(intent)
      const rule = intent.exit ? 'exit' : 'within_limits'
      await store.addDecision(tx, { id, taskId, intentHash: hash, rule, now })
      return made.make({ id, userId, taskId, intentHash: hash, expiresAt: later(now, receiptMs) })
    },

    async release(tx, taskId) {
      await store.releaseSpend(tx, taskId)
    },
  }

  const view = async (queryable: Queryable, userId: string) => {
    const found = await store.policyOf(queryable, userId)
    const limits = rules.narrow(house, found.own)
    const spentMicros = await store.spentMicros(queryable, userId, dayAgo())
    return { ...found, limits, spentMicros, paused: await store.pauseOf(queryable, userId) }
  }

  return {
    operations: operations({ ...needs, house, view }),
    policy: engine,
    genuine: made.genuine,
    async summary(userId) {
      const { limits, spentMicros, paused } = await view(on, userId)
      return {
        per_transaction_usd: rules.usd(limits.perTransactionMicros),
        per_day_usd: rules.usd(limits.perDayMicros),
        remaining_24h_usd: rules.usd(rules.remainingMicros({ limits, spentMicros })),
        paused: paused !== null,
      }
    },
    async setSwitch(id, turnOn, setBy) {
      await (turnOn ? store.setSwitch(on, id, clock.now(), setBy) : store.clearSwitch(on, id))
    },
  }
}
