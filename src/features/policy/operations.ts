import type { Transact } from '#durable/transactions.ts'
import type { RequestFacts } from '#kernel/caller.ts'
import type { Clock } from '#kernel/clock.ts'
import { Fault, invalid } from '#kernel/fault.ts'
import { sha256 } from '#kernel/id.ts'
import { canonicalJson } from '#kernel/json.ts'
import { toUnits, usdDecimals } from '#kernel/money.ts'
import { type InputOf, implement } from '#kernel/operation.ts'
import type { Tx } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import { contract } from './contract.ts'
import * as rules from './rules.ts'
import * as store from './store.ts'

type View = store.StoredPolicy & { limits: rules.Limits }
type OperationsDeps = {
  db: Queryable
  transact: Transact
  clock: Clock
  view: (db: Queryable, userId: string) => Promise<View>
  /** Ids of the chains that the gateway serves. */
  served: readonly string[]
}

const chainAddressView = (text: string) => {
  const colon = text.indexOf(':')
  return { chain_id: text.slice(0, colon), address: text.slice(colon + 1) }
}

const toResponse = ({ version, limits, spentMicros, paused, updatedAt }: View) => ({
  version,
  per_transaction_usd: rules.usd(limits.perTransactionMicros),
  per_day_usd: rules.usd(limits.perDayMicros),
  spent_24h_usd: rules.usd(spentMicros),
  remaining_24h_usd: rules.usd(rules.remainingMicros({ limits, spentMicros })),
  chains: [...limits.chains],
  tokens: limits.tokens?.map(chainAddressView) ?? null,
  recipients: limits.recipients.map(chainAddressView),
  paused:
    paused && paused.scope !== 'venue' ? { scope: paused.scope, since: paused.since.toISOString() } : null,
  updated_at: updatedAt?.toISOString() ?? null,
})

type Wanted = InputOf<(typeof contract)['entries']['tighten']>

const micros = (text: string | undefined) => (text === undefined ? null : toUnits(text, usdDecimals))
type ChainAddressView = { chain_id: string; address: string }

/** Deduplicated, and limited to chains that are served. */
function chainAddressesOf(
  field: string,
  list: readonly ChainAddressView[] | undefined,
  served: readonly string[],
) {
  const unservedIndex = list?.findIndex(({ chain_id }) => !served.includes(chain_id)) ?? -1
  if (unservedIndex >= 0) {
    const sentence = `Input should be one of the chains that are served: ${served.join(', ')}`
    throw invalid(`${field}.${unservedIndex}.chain_id`, 'chain_not_served', sentence)
  }
  return list ? [...new Set(list.map((each) => rules.chainAddressOf(each.chain_id, each.address)))] : null
}

const wantedOf = (input: Wanted, served: readonly string[]): rules.Overrides => ({
  perTransactionMicros: micros(input.per_transaction_usd),
  perDayMicros: micros(input.per_day_usd),
  chains: input.chains ? [...new Set(input.chains)] : null,
  tokens: chainAddressesOf('tokens', input.tokens, served),
  recipients: chainAddressesOf('recipients', input.recipients, served),
})

/** Carries the hash of the intent to confirm. No interface can confirm it yet, and the message says so. */
const stepUp = (userId: string, intent: object, sentence: string, extras: object = {}) =>
  new Fault('step_up_required', sentence, {
    extras: { ...extras, intent_sha256: sha256(canonicalJson({ user_id: userId, ...intent })) },
  })

const merged = (own: rules.Overrides, wanted: rules.Overrides): rules.Overrides => ({
  perTransactionMicros: wanted.perTransactionMicros ?? own.perTransactionMicros,
  perDayMicros: wanted.perDayMicros ?? own.perDayMicros,
  chains: wanted.chains ?? own.chains,
  tokens: wanted.tokens ?? own.tokens,
  recipients: wanted.recipients ?? own.recipients,
})

const fieldNames: Record<keyof rules.Limits, keyof Wanted> = {
  perTransactionMicros: 'per_transaction_usd',
  perDayMicros: 'per_day_usd',
  chains: 'chains',
  tokens: 'tokens',
  recipients: 'recipients',
}

export function operations({ db, transact, clock, view, served }: OperationsDeps) {
  const inTransaction = <T>({ tx }: RequestFacts, run: (tx: Tx) => Promise<T>) =>
    tx ? run(tx) : transact(run)

  return implement(contract, {
    show: async (_input, { userId }) => toResponse(await view(db, userId)),

    tighten: async (input, { userId }, request) => {
      if (request.isReplay) return toResponse(await view(db, userId))
      const wanted = wantedOf(input, served)
      return inTransaction(request, async (tx) => {
        const now = clock.now()
        await store.lockPolicy(tx, userId, now)
        const { own, version, limits } = await view(tx, userId)
        const wider = rules.widenedFields(limits, wanted).map((field) => fieldNames[field])
        if (wider.length > 0) {
          const sentence =
            'Raising a limit requires confirmation by a person, which this release does not support; the operator of this gateway can do it'
          throw stepUp(userId, { operation: 'policy_tighten', input }, sentence, { fields: wider })
        }
        const hasChanges = Object.values(wanted).some((each) => each !== null)
        if (hasChanges)
          await store.savePolicy(tx, userId, {
            own: merged(own, wanted),
            version: version + 1,
            now,
          })
        return toResponse(await view(tx, userId))
      })
    },

    kill: ({ on: wantsOn }, { userId, agentId }, request) =>
      inTransaction(request, async (tx) => {
        const id = { scope: 'user', userId } as const
        if (wantsOn) await store.setSwitch(tx, id, { since: clock.now(), setBy: agentId })
        const since = (await store.switchOf(tx, id))?.since
        if (!wantsOn && since) {
          const sentence =
            'Resuming requires confirmation by a person, which this release does not support; the operator of this gateway can do it'
          throw stepUp(userId, { operation: 'policy_kill', on: false }, sentence)
        }
        return { on: wantsOn, scope: 'user' as const, since: since?.toISOString() ?? null }
      }),
  })
}
