import type { NonceSequences } from '#durable/run/nonces.ts'
import { createLru } from '#kernel/async/create-lru.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { TrialAsker } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { type Random, timeOfId } from '#kernel/id.ts'
import { type EffectDriver, type SignContext, wouldFail } from '#kernel/task/effect-steps.ts'
import {
  executedBefore,
  isLookingUp,
  lookUpAgain,
  nothingFound,
  outsideId,
} from '#kernel/task/forgotten-execution.ts'
import type { GasCharge } from '#kernel/task/gas-charge.ts'
import type { Policy, PolicyReceipt, SvmIntent, SvmSigner } from '#kernel/task/signer.ts'
import { trialMsMax, unlessAway } from '#kernel/task/sponsored-effect.ts'
import type {
  Intent,
  JsonObject,
  NonceSequence,
  SignedEffect,
  SignFirst,
  StepResultOf,
  TaskView,
} from '#kernel/task/task.ts'
import { canonicalJson } from '#kernel/wire/json.ts'
import type { Landing } from '#upstreams/solana/landed-balance-changes.ts'
import type { Draft } from '#upstreams/solana/transaction-draft.ts'
import { type ConfirmDeps, confirmTransaction, endOfDropped } from './confirm.ts'
import type { LamportBudget } from './lamport-budget.ts'
import { settleFound } from './settle-found-transaction.ts'
import type { SvmPort } from './svm-port.ts'
import { effectKind, nonceKind, type SvmOptions, type SvmPlan, type SvmTaskData } from './transaction-plan.ts'
import { type HeldUnits, heldUnits } from './wallet-balances.ts'

/** Runs instructions of the user's wallet in one transaction that the sponsor pays for, as the driver of an effect. */

export type SvmTransactions = {
  /** Throws before a task exists if the chain is not served or no sponsor can pay. */
  ready(chainId: string, options?: { fullExit: boolean }): Promise<void>
  /** Composes and simulates the transaction of an admission, and returns its charge to the user's budget. */
  trial(asker: TrialAsker, plan: SvmPlan): Promise<SvmTrial>
  /** Returns the changes by the first transaction of an execution id; undefined if the account has executed none. */
  executed(order: ExecutedOrder): Promise<Landing | undefined>
  driver<Data extends SvmTaskData, Proof, Names extends string = 'sign' | 'confirm'>(
    options: SvmOptions<Data, Proof>,
  ): EffectDriver<Data, SvmPlan, Proof, Names>
}
type ExecutedOrder = { chainId: string; userId: string; account: string; executionId: string }
export type SvmTrial =
  | {
      ok: true
      feeLamports: bigint
      rentLamports: bigint
      charge: GasCharge
      /**
       * Signs, at the acceptance, the transaction that was simulated for the admission. Returns undefined if that
       * transaction is too old.
       */
      signOnAccept: SignFirst<'confirm'>
    }
  | { ok: false; reason: string }

type SvmTransactionsDeps = {
  budget: LamportBudget
  ports: ReadonlyMap<string, SvmPort>
  policy: Pick<Policy, 'authorize' | 'authorizeOnAccept' | 'release'>
  signer: SvmSigner
  nonces: Pick<NonceSequences, 'ensure'>
  assertFree: (chainId: string) => void
  clock: Clock
  random: Random
}

const openedMax = 10_000
/**
 * A blockhash is valid for 150 blocks, about a minute, or longer if blocks are slow. The height of the last
 * valid block is in the intent: only a finalised block above it proves that the bytes are void.
 */
const validForMs = 10 * 60_000

export function createSvmTransactions(deps: SvmTransactionsDeps): SvmTransactions {
  const { budget, policy } = deps
  const portOf = portsOf(deps)
  const openSequence = openedSequences(deps)
  const find = referenceFinder(portOf)
  const confirmDeps: ConfirmDeps = { portOf, budget, policy }

  /** Composes a transaction with an `id` of its own, since two equal orders would be the same transaction. */
  const compose = async (plan: SvmPlan, { id, reference }: { id: string; reference: string | undefined }) => {
    const port = portOf(plan.chainId)
    const { account, spends } = plan
    const feePayer = await port.sponsor.pick({ fullExit: plan.fullExit ?? false })
    const [result, held] = await Promise.all([
      port.draft({ ...plan, feePayer, id, reference }),
      heldUnits(port.chain, { account, tokens: [...new Set(spends.map(({ token }) => token))] }),
    ])
    return { port, feePayer, result, held }
  }

  const sign = async <Data extends SvmTaskData, Proof, Names extends string>(
    options: SvmOptions<Data, Proof>,
    task: TaskView<Data>,
    plan: SvmPlan,
    context: SignContext<Data, Proof, Names>,
  ): Promise<StepResultOf<Partial<Data>, Names>> => {
    const { steps } = context
    const own = task.effects.filter(({ kind, step }) => kind === effectKind && step === steps.sign)
    const live = own.find(({ status }) => status !== 'dropped')
    if (live) throw new Error(`task ${task.id} signs again while effect ${live.id} may land`)
    const reference = referenceOf(portOf(plan.chainId), task, plan)
    const [found, composed] = await Promise.allSettled([
      find(task.userId, plan, outsideId(task) && reference),
      compose(plan, { id: `${task.id} ${steps.sign} ${own.length}`, reference }),
    ])
    if (found.status === 'rejected') {
      if (!(found.reason instanceof Fault)) throw found.reason
      const sought = { chain_id: plan.chainId, kind: effectKind }
      return lookUpAgain({ task, context }, { state: 'reconciling', note: found.reason.message, sought })
    }
    const transaction = found.value
    if (transaction)
      return settleFound({ ...options, port: portOf(plan.chainId), budget, task, plan, transaction, context })
    if (isLookingUp(task)) {
      const ended = endOfDropped(task, { port: portOf(plan.chainId), now: context.now, step: steps.sign })
      return ended ?? nothingFound<Data, Names>(steps.sign)
    }
    const refused = await plan.refusal?.()
    if (refused) return refused
    if (composed.status === 'rejected') throw composed.reason
    const { port, feePayer, result, held } = composed.value
    if (!result.ok) return wouldFail(port.chain.row, result.reason)
    const nonceSequence = await openSequence(plan)
    const intent = intentOf(task, plan, { feePayer, draft: result.draft })
    const build: Intent['build'] = async (tx) => {
      const receipt = await policy.authorize(tx, intent)
      return signUnder(deps, { port, intent, receipt, draft: result.draft, held })
    }
    return { sign: { nonceSequence, build }, next: steps.confirm, state: 'signed' }
  }

  const trial: SvmTransactions['trial'] = async ({ userId, executionId }, plan) => {
    const readAtMs = deps.clock.now().getTime()
    const id = Buffer.from(deps.random.bytes(16)).toString('hex')
    const reference = executionId && portOf(plan.chainId).referenceOf({ executionId, sequence: 0 })
    const [{ port, feePayer, result, held }, authorize, mayBeFound] = await Promise.all([
      compose(plan, { id, reference }),
      policy.authorizeOnAccept(userId, plan.chainId),
      isNamed(portOf(plan.chainId), { reference, since: timeOfId(userId) }),
    ])
    if (!result.ok) return { ok: false, reason: result.reason }
    const { draft } = result
    const { feeLamports, rentLamports } = draft
    const charge = budget.chargeOf({
      chainId: plan.chainId,
      units: feeLamports + rentLamports,
      fullExit: plan.fullExit ?? false,
      isExit: plan.exit,
    })
    const signFirst: SignFirst<'confirm'> = async (task, { now }) => {
      const ageMs = now.getTime() - readAtMs
      if (ageMs < 0 || ageMs > trialMsMax || mayBeFound || outsideId(task) !== executionId) return undefined
      const nonceSequence = await openSequence(plan)
      const intent = intentOf(task, plan, { feePayer, draft })
      const { receipt, ...granted } = authorize(intent)
      const sign = await signUnder(deps, { port, intent, receipt, draft, held })
      const build: Intent['build'] = async () => sign
      const signInOrder = async () => ({ ...granted, sign })
      return { sign: { nonceSequence, build, signInOrder }, next: 'confirm', state: 'signed' }
    }
    return {
      ok: true,
      feeLamports,
      rentLamports,
      charge,
      signOnAccept: unlessAway(signFirst),
    }
  }

  return {
    async ready(chainId, options = { fullExit: false }) {
      deps.assertFree(chainId)
      await portOf(chainId).sponsor.ready(options)
    },
    trial,
    executed: (transaction) => executedTransaction(portOf(transaction.chainId), transaction),
    driver: (options) => ({
      sign: (task, plan, context) => sign(options, task, plan, context),
      confirm: (task, settle, context) =>
        confirmTransaction(confirmDeps, { ...options, task, settle }, context),
    }),
  }
}

const portsOf =
  ({ ports }: Pick<SvmTransactionsDeps, 'ports'>) =>
  (chainId: string): SvmPort => {
    const port = ports.get(chainId)
    if (port) return port
    throw new Fault('unavailable', `Sponsored transactions are not available on chain ${chainId}`)
  }

/**
 * Finds a transaction on the chain that names the reference, although this database lacks it or counts it as dropped.
 */
const referenceFinder =
  (portOf: (chainId: string) => SvmPort) =>
  async (userId: string, { chainId, account }: SvmPlan, reference: string | undefined) =>
    reference === undefined
      ? undefined
      : portOf(chainId).findReferenced({ reference, account, since: timeOfId(userId) })

async function executedTransaction(
  port: SvmPort,
  { userId, account, executionId }: ExecutedOrder,
): ReturnType<SvmTransactions['executed']> {
  const reference = port.referenceOf({ executionId, sequence: 0 })
  const found = await port.findReferenced({ reference, account, since: timeOfId(userId) })
  return found && port.readLanding(found.landed, { raw: found.landed.raw, account })
}

/**
 * Whether the chain may have a transaction that names the reference. This check is cheap and serves the admission; the
 * step that signs finds the transaction itself.
 */
const isNamed = async (
  { chain }: SvmPort,
  { reference, since }: { reference: string | undefined; since: Date },
): Promise<boolean> => {
  if (reference === undefined) return false
  const newest = chain.history(reference, { commitment: 'confirmed', limit: 1, since })
  return newest.then(
    ({ length }) => length > 0,
    () => true,
  )
}

/** Returns the reference of the task's next transaction: each executed transaction has a reference of its own. */
function referenceOf(port: SvmPort, task: TaskView<SvmTaskData>, { chainId }: SvmPlan): string {
  const sequence = executedBefore(task, { kind: effectKind, chainId })
  return port.referenceOf({ executionId: task.executionId, sequence })
}

type SignOrder = {
  port: SvmPort
  intent: SvmIntent
  receipt: PolicyReceipt
  draft: Draft
  held: HeldUnits[]
}

/** Adds the signatures of wallet and sponsor; the wallet's sequence number is taken last and changes no byte. */
async function signUnder(
  { signer, clock }: Pick<SvmTransactionsDeps, 'signer' | 'clock'>,
  { port, intent, receipt, draft, held }: SignOrder,
): Promise<(nonce: bigint) => Promise<SignedEffect>> {
  const userSignature = await signer.signMessage(intent, receipt)
  const { signature, raw } = port.sponsor.sign({ intent, receipt, userSignature })
  const effect = {
    kind: effectKind,
    externalId: signature,
    intent: JSON.parse(canonicalJson(intent)) as JsonObject,
    signed: { signature, slot: String(draft.slot), held },
    policyReceipt: receipt.id,
    validUntil: later(clock.now(), validForMs),
  }
  return async (nonce) => ({ effect, txAttempt: { externalId: signature, raw, nonce } })
}

/**
 * Solana has no nonce: a signature is unique by its bytes. A number per wallet, taken with the signature, orders
 * a user's signatures without a row that all users share.
 */
function openedSequences({ nonces }: SvmTransactionsDeps) {
  const opened = createLru<string, true>(openedMax)
  return async ({ chainId, account }: SvmPlan): Promise<NonceSequence> => {
    const nonceSequence = { kind: nonceKind, chain: chainId, signer: account }
    const key = `${chainId}:${account}`
    if (!opened.has(key)) await nonces.ensure(nonceSequence, 0n)
    opened.set(key, true)
    return nonceSequence
  }
}

function intentOf(
  { id: taskId, userId }: Pick<TaskView, 'id' | 'userId'>,
  plan: SvmPlan,
  { feePayer, draft }: { feePayer: string; draft: Draft },
): SvmIntent {
  const { chainId, account, operation, spends, tokens, recipients, usdMicros, exit, principal } = plan
  const { message, lastValidBlockHeight } = draft
  return {
    type: 'svm_transaction',
    userId,
    taskId,
    operation,
    chainId,
    tokens,
    recipients,
    usdMicros,
    exit,
    ...(principal && { principal }),
    account,
    feePayer,
    spends,
    message,
    lastValidBlockHeight,
  }
}
