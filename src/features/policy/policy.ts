import type { EventLog } from '#durable/events/event-log.ts'
import type { Wallet } from '#engines/custody/wallet-store.ts'
import type { MailQueue } from '#engines/person-mails/mail-queue.ts'
import { type Clock, later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Operation } from '#kernel/contract/operation.ts'
import { type Random, uuidv7 } from '#kernel/id.ts'
import type { ActRequests } from '#kernel/task/act-approval-request.ts'
import { ApprovalRequired } from '#kernel/task/approval.ts'
import {
  intentHash,
  type PlannedAction,
  type Policy,
  type PolicyGrant,
  type PolicyReceipt,
  type SigningIntent,
  transferOperation,
} from '#kernel/task/signer.ts'
import type { Tx } from '#kernel/task/task.ts'
import { type Queryable, settleAll } from '#store/query.ts'
import { approvalNeeded, evaluateSignature } from './approval-rules.ts'
import { createOperations } from './operations.ts'
import { createReceipts, type Receipts } from './receipt.ts'
import { effectiveRecipientsOf } from './recipient-store.ts'
import * as rules from './rules.ts'
import * as store from './store.ts'
import { dropPending, type EndedLink, endLink } from './unlink-agent.ts'

const receiptMs = 60_000

export type PlatformLimits = {
  perTransactionMicros: bigint
  perDayMicros: bigint
  chains: readonly string[]
  tokens: readonly { chainId: string; address: string }[] | null
  /** The protocol contracts that may receive money: vaults and depositories. */
  contracts: readonly { chainId: string; address: string }[]
}

export type PolicyDeps = {
  db: Queryable
  clock: Clock
  random: Random
  platformLimits: PlatformLimits
  /** How long a limit that a person has raised waits before it takes effect. */
  coolingMs: number
  events: Pick<EventLog, 'add' | 'notify'>
  acts: ActRequests
  walletsOf: (db: Queryable, userId: string) => Promise<Wallet[]>
  mailQueue: MailQueue
  chainName: (chainId: string) => string
}

export type PolicySummary = {
  per_transaction_usd: string
  per_day_usd: string
  remaining_24h_usd: string
  chat_per_day_usd: string
  approval_above_usd: string | null
  paused: boolean
}

export type VenueAccountRef = { userId: string; chainId: string }

export type PolicyFeature = {
  operations: Operation[]
  policy: Policy
  /** Whether this policy issued the receipt; custody asks before it signs. */
  isAuthentic(receipt: PolicyReceipt): boolean
  /** `paused` counts the switch of a venue whose chain is named. */
  summary(userId: string, chainId?: string): Promise<PolicySummary>
  chatRemainingMicros(userId: string): Promise<bigint>
  setSwitch(id: store.SwitchId, isOn: boolean, setBy: string): Promise<void>
  /** Stops the opening of positions on an account about which gateway and venue disagree, until it is unfrozen. */
  freeze(tx: Tx, where: VenueAccountRef, reason: string): Promise<void>
  unfreeze(tx: Tx, where: VenueAccountRef): Promise<void>
  /**
   * Drops the pending changes of a linked agent, and undoes or keeps what its person has set, in the transaction that
   * unlinks the agent from its person.
   */
  endLink(tx: Tx, link: EndedLink): Promise<void>
  /** Drops pending raises and recipients of an agent, in the transaction that contests its link. */
  dropPending(tx: Tx, userId: string): Promise<void>
}

function faultOf(refusal: rules.Refusal): Fault {
  if (refusal.code === 'policy_denied') {
    const { code, ...extras } = refusal
    return new Fault(code, `The policy denies this: ${extras.reason}; \`policy_show\` has the limits`, {
      extras,
    })
  }
  const { scope, since } = refusal
  const extras = { scope, since: since.toISOString() }
  if (scope !== 'venue')
    return new Fault(
      'trading_paused',
      `Trading is paused by a kill switch since ${extras.since}: closes, cancels and withdrawals go on, and ${scope === 'global' ? 'the operator' : 'the person, on a page of this gateway, or the operator,'} resumes the rest`,
      { extras },
    )
  return new Fault('trading_paused', `The venue account is frozen: ${refusal.reason}`, {
    extras: { ...extras, reason: refusal.reason },
  })
}

function throwIfRefused(refusal: rules.Refusal | null): void {
  if (refusal) throw faultOf(refusal)
}

const limitsOf = (platformLimits: PlatformLimits): rules.Limits => {
  const toChainAddress = (each: { chainId: string; address: string }) =>
    rules.chainAddressOf(each.chainId, each.address)
  const { perTransactionMicros, perDayMicros, chains } = platformLimits
  const tokens = platformLimits.tokens?.map(toChainAddress) ?? null
  return {
    perTransactionMicros,
    perDayMicros,
    // Chats may start as much as the user allows, which is nothing by default.
    chatPerDayMicros: perDayMicros,
    chains,
    tokens,
    recipients: platformLimits.contracts.map(toChainAddress),
    approvalAboveMicros: null,
  }
}

/**
 * Returns the request that the rules evaluate. It has the tokens and recipients that the intent declares and those that
 * are signed, because all of them have to be allowed.
 */
function requestOf(intent: SigningIntent): rules.PolicyRequest {
  if (intent.type === 'venue_action') {
    const { action } = intent
    return action.type === 'withdraw'
      ? { ...intent, recipients: [...intent.recipients, action.destination] }
      : intent
  }
  if (intent.type === 'prediction_action') return intent
  const receivers =
    intent.type === 'evm_batch'
      ? intent.spends.map(({ spender }) => spender)
      : intent.spends.map(({ to }) => to)
  return {
    ...intent,
    tokens: [...intent.tokens, ...intent.spends.map(({ token }) => token)],
    recipients: [...intent.recipients, ...receivers],
  }
}

export function createPolicy(deps: PolicyDeps): PolicyFeature {
  const { db, clock } = deps
  const platformLimits = limitsOf(deps.platformLimits)
  const issued = createReceipts()

  const view: ReadView = async (queryable, userId, { chainId = null, except = null } = {}) => {
    const now = clock.now()
    const since = later(now, -rules.dayMs)
    const stored = await store.policyStateOf(queryable, userId, { since, except, chainId })
    const { own, pending } = rules.withChanges(stored.own, stored.changes, now)
    return { ...stored, own, pending, limits: rules.intersect(platformLimits, own) }
  }

  return {
    operations: createOperations({ ...deps, view, platformLimits }),
    policy: engine({ ...deps, limits: platformLimits, view, issued }),
    isAuthentic: issued.isAuthentic,
    async summary(userId, chainId) {
      const { limits, spentMicros, paused } = await view(db, userId, chainId === undefined ? {} : { chainId })
      return {
        per_transaction_usd: rules.usd(limits.perTransactionMicros),
        per_day_usd: rules.usd(limits.perDayMicros),
        remaining_24h_usd: rules.usd(rules.remainingMicros({ limits, spentMicros })),
        chat_per_day_usd: rules.usd(limits.chatPerDayMicros),
        approval_above_usd:
          limits.approvalAboveMicros === null ? null : rules.usd(limits.approvalAboveMicros),
        paused: paused !== null,
      }
    },
    chatRemainingMicros: async (userId) => rules.chatRemainingMicros(await view(db, userId)),
    async setSwitch(id, turnOn, setBy) {
      await (turnOn ? store.setSwitch(db, id, { since: clock.now(), setBy }) : store.clearSwitch(db, id))
    },
    async freeze(tx, where, reason) {
      const details = { since: clock.now(), setBy: 'reconciliation', reason }
      await store.setSwitch(tx, { scope: 'venue', ...where }, details)
    },
    async unfreeze(tx, where) {
      await store.clearSwitch(tx, { scope: 'venue', ...where })
    },
    endLink: (tx, link) => endLink(tx, link, clock.now()),
    dropPending: (tx, userId) => dropPending(tx, { userId, now: clock.now() }),
  }
}

const grantOf = (
  action: rules.PolicyRequest,
  { version, limits }: Pick<View, 'version' | 'limits'>,
): PolicyGrant => ({
  version,
  countedMicros: rules.countedMicros(action),
  perDayMicros: limits.perDayMicros,
  chatPerDayMicros: limits.chatPerDayMicros,
  chainId: action.chainId,
  exit: action.exit,
  exempt: action.usdMicros === 0n,
})

type View = store.StoredPolicy & { limits: rules.Limits; pending: rules.Change[] }
type ReadView = (
  db: Queryable,
  userId: string,
  where?: { chainId?: string; except?: string },
) => Promise<View>
type EngineDeps = PolicyDeps & {
  limits: rules.Limits
  view: ReadView
  issued: Receipts
}

function engine({ db, clock, random, walletsOf, limits: platformLimits, view, issued }: EngineDeps): Policy {
  const addressesOf = async (queryable: Queryable, userId: string) =>
    (await walletsOf(queryable, userId)).map(({ address }) => address)
  /** Throws if the policy refuses the request; returns the state by which the request was allowed. */
  const enforce = async (
    queryable: Queryable,
    userId: string,
    request: rules.PolicyRequest,
    state: View,
  ): Promise<rules.PolicyState> => {
    const evaluated = {
      ...state,
      platformLimits,
      ownAddresses: await addressesOf(queryable, userId),
      // Only transfers pay to recipients, so the recipients are read for transfers only.
      effectiveRecipients:
        request.operation === transferOperation
          ? await effectiveRecipientsOf(queryable, userId, clock.now())
          : [],
    }
    throwIfRefused(rules.evaluate(request, evaluated))
    return evaluated
  }
  const assertApproved = (action: PlannedAction, state: rules.PolicyState): void => {
    const need = approvalNeeded(action, state)
    if (need) throw new ApprovalRequired(action, need.rule, need.reason)
  }

  return {
    async check(action) {
      const { userId, chainId } = action
      const state = await view(db, userId, { chainId })
      const evaluated = await enforce(db, userId, action, state)
      throwIfRefused(rules.refusedToChats(action, evaluated))
      if (action.budget) {
        const spentMicros = await store.spentOfSchedule(db, action.budget.scheduleId)
        throwIfRefused(rules.refusedByBudget(action, { ...action.budget, spentMicros }))
      }
      assertApproved(action, evaluated)
      return grantOf(action, state)
    },

    async authorizeOnAccept(userId, chainId) {
      const readState = () => settleAll([view(db, userId, { chainId }), addressesOf(db, userId)])
      const evaluate = (intent: SigningIntent, [state, ownAddresses]: [View, string[]]) => {
        const evaluated = { ...state, platformLimits, ownAddresses }
        throwIfRefused(rules.evaluate(requestOf(intent), evaluated))
        // Only the acceptance knows the caller, so an intent that may need an approval is signed after the acceptance.
        assertApproved(intent, evaluated)
        return grantOf(intent, state)
      }
      const read = await readState()
      return (intent) => {
        if (intent.userId !== userId || intent.chainId !== chainId)
          throw new Error('an intent of another user or chain was submitted for signing on accept')
        const grant = evaluate(intent, read)
        const now = clock.now()
        const facts = { id: uuidv7(now, random), taskId: intent.taskId, intentHash: intentHash(intent) }
        const receipt = issued.make({ ...facts, userId, expiresAt: later(now, receiptMs) })
        return { receipt, grant, check: async () => evaluate(intent, await readState()) }
      }
    },

    async authorize(tx, intent) {
      const { userId, taskId, chainId } = intent
      const now = clock.now()
      const readState = () => view(tx, userId, { chainId, except: taskId })
      const [reserved, current] = await settleAll([store.lockSpend(tx, taskId, userId), readState()])
      if (!reserved) throw faultOf(rules.refuse('reservation', 'this task has no reservation'))
      const micros = rules.countedMicros(intent)
      const authorizedMicros = reserved.authorized_micros + micros
      const beyond = authorizedMicros > reserved.usd_micros
      const takenMicros = beyond ? authorizedMicros : reserved.usd_micros
      // The removal of a recipient holds this lock, so a recipient that is being removed receives nothing.
      const isLocked = beyond || intent.operation === transferOperation
      if (isLocked) await store.lockPolicy(tx, userId, now)
      const state = isLocked ? await readState() : current
      const taken = takenMicros - micros
      const spentMicros = state.spentMicros + taken
      const chatSpentMicros = state.chatSpentMicros + taken
      // A task that a chat has started stays within the limit of chats, whatever it signs.
      const principal = reserved.is_of_chat ? { principal: 'chat' as const } : {}
      const request = { ...requestOf(intent), ...principal }
      const evaluated = await enforce(tx, userId, request, { ...state, spentMicros, chatSpentMicros })
      throwIfRefused(
        evaluateSignature(intent, { ...evaluated, reservedMicros: reserved.usd_micros, takenMicros }),
      )
      const id = uuidv7(now, random)
      const hash = intentHash(intent)
      await store.saveSpend(tx, taskId, takenMicros, authorizedMicros)
      return issued.make({ id, userId, taskId, intentHash: hash, expiresAt: later(now, receiptMs) })
    },

    async release(tx, { userId, taskId, intent }) {
      const reserved = await store.lockSpend(tx, taskId, userId)
      if (!reserved || intent.exit === true) return
      const left = reserved.authorized_micros - BigInt(String(intent.usdMicros))
      await store.saveSpend(tx, taskId, reserved.usd_micros, left > 0n ? left : 0n)
    },
  }
}
