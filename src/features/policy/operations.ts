import type { EventLog } from '#durable/event-log.ts'
import type { Transact } from '#durable/transactions.ts'
import { linkCoolsUntil, type Subject, subjectOf, youngLink } from '#engines/agent-links/owners.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import type { MailKind } from '#engines/person-mails/mail-text.ts'
import type { Caller, RequestFacts } from '#kernel/caller.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { invalid, notFound } from '#kernel/fault.ts'
import { assertFreshPerson } from '#kernel/fresh-person.ts'
import { type Random, sha256, uuidv7 } from '#kernel/id.ts'
import { canonicalJson } from '#kernel/json.ts'
import { toUnits, usdDecimals } from '#kernel/money.ts'
import { type InputOf, implement } from '#kernel/operation.ts'
import type { Tx } from '#kernel/task.ts'
import type { Queryable } from '#store/query.ts'
import { contract } from './contract.ts'
import { raisedText, resumedText } from './person-mail-texts.ts'
import * as rules from './rules.ts'
import * as store from './store.ts'

type View = store.StoredPolicy & { limits: rules.Limits; pending: readonly rules.Change[] }
type OperationsDeps = {
  db: Queryable
  transact: Transact
  clock: Clock
  random: Random
  events: Pick<EventLog, 'add' | 'notify'>
  view: (db: Queryable, userId: string) => Promise<View>
  platformLimits: rules.Limits
  coolingMs: number
  mailQueue: MailQueue
  chainName: (chainId: string) => string
}

type PolicyInput = Omit<InputOf<(typeof contract)['entries']['tighten']>, 'for_agent'>

const chainAddressView = (text: string) => {
  const colon = text.indexOf(':')
  return { chain_id: text.slice(0, colon), address: text.slice(colon + 1) }
}

const fieldNames: Record<keyof rules.Limits, keyof PolicyInput> = {
  perTransactionMicros: 'per_transaction_usd',
  perDayMicros: 'per_day_usd',
  chatPerDayMicros: 'chat_per_day_usd',
  chains: 'chains',
  tokens: 'tokens',
  recipients: 'recipients',
  approvalAboveMicros: 'approval_above_usd',
}

const valueView = (value: rules.Change['value']) => {
  if (typeof value === 'bigint') return rules.usd(value)
  return value?.map((each) => (each.includes(':') ? chainAddressView(each) : each)) ?? null
}

const changeView = ({ id, field, value, requestedAt, effectiveAt }: rules.Change) => ({
  change_id: id,
  field: fieldNames[field],
  [fieldNames[field]]: valueView(value),
  requested_at: requestedAt.toISOString(),
  effective_at: effectiveAt.toISOString(),
})

const policyView = (
  { version, limits, spentMicros, chatSpentMicros, paused, updatedAt, pending }: View,
  coolingMs: number,
) => ({
  version,
  per_transaction_usd: rules.usd(limits.perTransactionMicros),
  per_day_usd: rules.usd(limits.perDayMicros),
  spent_24h_usd: rules.usd(spentMicros),
  remaining_24h_usd: rules.usd(rules.remainingMicros({ limits, spentMicros })),
  chat_per_day_usd: rules.usd(limits.chatPerDayMicros),
  chat_remaining_24h_usd: rules.usd(rules.chatRemainingMicros({ limits, chatSpentMicros })),
  chains: [...limits.chains],
  tokens: limits.tokens?.map(chainAddressView) ?? null,
  recipients: limits.recipients.map(chainAddressView),
  approval_above_usd: limits.approvalAboveMicros === null ? null : rules.usd(limits.approvalAboveMicros),
  paused:
    paused && paused.scope !== 'venue' ? { scope: paused.scope, since: paused.since.toISOString() } : null,
  updated_at: updatedAt?.toISOString() ?? null,
  pending_changes: pending.map(changeView),
  cooling_seconds: coolingMs / 1_000,
})

type ChainAddressView = { chain_id: string; address: string }

/** Deduplicated, and limited to chains that are served. */
function chainAddressesOf(field: string, list: readonly ChainAddressView[], served: readonly string[]) {
  const unservedIndex = list.findIndex(({ chain_id }) => !served.includes(chain_id))
  if (unservedIndex >= 0) {
    const sentence = `Input should be one of the chains that are served: ${served.join(', ')}`
    throw invalid(`${field}.${unservedIndex}.chain_id`, 'chain_not_served', sentence)
  }
  return [...new Set(list.map((each) => rules.chainAddressOf(each.chain_id, each.address)))]
}

function wantedOf(input: PolicyInput, { chains: served }: rules.Limits): rules.Wanted {
  const { per_transaction_usd: perTransaction, per_day_usd: perDay, chains, tokens, recipients } = input
  const { approval_above_usd: approvalAbove, chat_per_day_usd: chatPerDay } = input
  return {
    ...(perTransaction !== undefined && { perTransactionMicros: toUnits(perTransaction, usdDecimals) }),
    ...(perDay !== undefined && { perDayMicros: toUnits(perDay, usdDecimals) }),
    ...(chatPerDay !== undefined && { chatPerDayMicros: toUnits(chatPerDay, usdDecimals) }),
    ...(chains && { chains: [...new Set(chains)] }),
    ...(tokens !== undefined && { tokens: tokens && chainAddressesOf('tokens', tokens, served) }),
    ...(recipients && { recipients: chainAddressesOf('recipients', recipients, served) }),
    ...(approvalAbove !== undefined && {
      approvalAboveMicros: approvalAbove === null ? null : toUnits(approvalAbove, usdDecimals),
    }),
  }
}

/** A person raises limits up to those of the platform. */
function assertWithinPlatform(platformLimits: rules.Limits, wanted: rules.Wanted): void {
  const [field] = rules.widenedFields(platformLimits, wanted)
  if (field === undefined) return
  const limit = platformLimits[field]
  const name = fieldNames[field]
  if (typeof limit === 'bigint')
    throw invalid(name, 'less_than_equal', `Input should be less than or equal to ${rules.usd(limit)}`, {
      le: rules.usd(limit),
    })
  throw invalid(
    name,
    'not_allowed',
    'Input should have only entries that the operator of this gateway allows',
  )
}

type Changed =
  | { cause: 'tightened' | 'raised' | 'cancelled'; fields: (keyof rules.Limits)[]; effectiveAt?: Date }
  | { cause: 'paused' | 'resumed' }

type ChangeResult<T> = {
  answer: T
  changed: readonly Changed[]
  /** The message to the person. */
  mail?: { kind: MailKind; text: string; effectiveAt?: Date } | undefined
}

const mailOfRaised = (effectiveAt: Date, raised: readonly unknown[], text: () => string) =>
  raised.length > 0 ? { kind: 'limits_raised' as const, text: text(), effectiveAt } : undefined

const changedEvent = (userId: string, agentId: string, changed: Changed) => ({
  type: 'policy.changed',
  subject: { kind: 'policy', id: userId },
  data: {
    cause: changed.cause,
    fields: 'fields' in changed ? changed.fields.map((field) => fieldNames[field]) : [],
    effective_at: ('effectiveAt' in changed && changed.effectiveAt?.toISOString()) || null,
    by: agentId,
  },
})

export function operations(deps: OperationsDeps) {
  const { db, transact, clock, view, platformLimits, coolingMs, events, mailQueue, chainName } = deps
  const toResponse = (state: View) => policyView(state, coolingMs)
  const show = async (caller: Caller, forAgent: string | undefined) =>
    toResponse(await view(db, (await subjectOf(db, caller, forAgent)).userId))
  /** Runs an act for one user, the caller or a linked agent, and publishes what it changed. */
  const change = <T>(
    { caller, forAgent }: { caller: Caller; forAgent: string | undefined },
    { tx: given, afterCommit }: RequestFacts,
    run: (tx: Tx, now: Date, subject: Subject) => Promise<ChangeResult<T>>,
  ): Promise<T> => {
    const inTransaction = async (tx: Tx) => {
      const subject = await subjectOf(tx, caller, forAgent, { lock: true })
      const { answer, changed, mail } = await run(tx, clock.now(), subject)
      const { userId } = subject
      await events.add(
        tx,
        userId,
        changed.map((each) => changedEvent(userId, caller.agentId, each)),
      )
      // Only a person loosens, and is notified of it.
      if (mail) await mailQueue.add(tx, caller.userId, mail.kind, mail)
      if (changed.length > 0) afterCommit?.(() => events.notify(userId))
      if (mail) afterCommit?.(mailQueue.wake)
      return answer
    }
    return given ? inTransaction(given) : transact(inTransaction)
  }

  return implement(contract, {
    show: ({ for_agent }, caller) => show(caller, for_agent),

    tighten: async ({ for_agent: forAgent, ...input }, caller, request) => {
      if (request.isReplay) return show(caller, forAgent)
      const wanted = wantedOf(input, platformLimits)
      return change({ caller, forAgent }, request, async (tx, now, subject) => {
        const { userId } = subject
        await store.lockPolicy(tx, userId, now)
        const before = await view(tx, userId)
        const wider = rules.widenedFields(before.limits, wanted)
        if (wider.length > 0) {
          assertFreshPerson(caller, now, {
            fields: wider.map((field) => fieldNames[field]),
            intent_sha256: intentHash(userId, { operation: 'policy_tighten', input }),
          })
          assertWithinPlatform(platformLimits, wanted)
        }
        const { own, tightened, raised, remaining } = rules.decide(before, wanted)
        if (tightened.length + raised.length === 0) return { answer: toResponse(before), changed: [] }
        const effectiveAt = later(now, coolingMs)
        const added = raised.map((field) => ({
          id: uuidv7(now, deps.random),
          field,
          value: wanted[field]!,
          requestedAt: now,
          effectiveAt,
        }))
        await store.savePolicy(tx, userId, { own, version: before.version + 1, now })
        await store.saveChanges(tx, userId, [...remaining, ...added])
        const changed: Changed[] = [
          ...(tightened.length > 0 ? [{ cause: 'tightened' as const, fields: tightened }] : []),
          ...(raised.length > 0 ? [{ cause: 'raised' as const, fields: raised, effectiveAt }] : []),
        ]
        return {
          answer: toResponse(await view(tx, userId)),
          changed,
          mail: mailOfRaised(effectiveAt, raised, () =>
            raisedText(subject, raised, { before: before.limits, wanted, chainName }),
          ),
        }
      })
    },

    cancelChange: async ({ change_id: changeId, for_agent: forAgent }, caller, request) => {
      if (request.isReplay) return show(caller, forAgent)
      return change({ caller, forAgent }, request, async (tx, now, { userId }) => {
        await store.lockPolicy(tx, userId, now)
        const { own, pending, version } = await view(tx, userId)
        const cancelled = pending.find(({ id }) => id === changeId)
        if (!cancelled) throw notFound('pending change', 'policy_show')
        const remaining = pending.filter((each) => each !== cancelled)
        // The version refuses every task that was admitted by other limits, on an instance whose clock is ahead.
        await store.savePolicy(tx, userId, { own, version: version + 1, now })
        await store.saveChanges(tx, userId, remaining)
        return {
          answer: toResponse(await view(tx, userId)),
          changed: [{ cause: 'cancelled', fields: [cancelled.field] }],
        }
      })
    },

    kill: ({ on: wantsOn, for_agent: forAgent }, caller, request) =>
      change({ caller, forAgent }, request, async (tx, now, subject) => {
        const { userId } = subject
        const id = { scope: 'user', userId } as const
        const before = await store.switchOf(tx, id)
        const answer = (since: Date | null) => ({
          on: wantsOn,
          scope: 'user' as const,
          since: since?.toISOString() ?? null,
        })
        if (before === undefined && !wantsOn) return { answer: answer(null), changed: [] }
        if (wantsOn) {
          if (before) return { answer: answer(before.since), changed: [] }
          await store.setSwitch(tx, id, { since: now, setBy: caller.agentId })
          return { answer: answer(now), changed: [{ cause: 'paused' }] }
        }
        const intent = { operation: 'policy_kill', on: false }
        assertFreshPerson(caller, now, { intent_sha256: intentHash(userId, intent) })
        if (before!.set_by !== caller.agentId) assertEstablished(subject, { now, coolingMs })
        await store.clearSwitch(tx, id)
        return {
          answer: answer(null),
          changed: [{ cause: 'resumed' }],
          mail: { kind: 'trading_resumed', text: resumedText(subject) },
        }
      }),
  })
}

/** What the owner of an agent has stopped stays stopped while a link is young. */
function assertEstablished({ linkedAt }: Subject, at: { now: Date; coolingMs: number }): void {
  const until = linkCoolsUntil(linkedAt, at)
  if (until === undefined) return
  throw youngLink(
    linkedAt!,
    `until ${until.toISOString()} only the switch that you have set yourself can be lifted`,
  )
}

const intentHash = (userId: string, intent: object): string =>
  sha256(canonicalJson({ user_id: userId, ...intent }))
