import type { NonceSequences } from '#durable/run/nonces.ts'
import { type Clock, later } from '#kernel/clock.ts'
import type { TrialAsker } from '#kernel/contract/caller.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { chainNotServed } from '#kernel/contract/token-ref.ts'
import type { EffectDriver, SignContext } from '#kernel/task/effect-steps.ts'
import {
  executedBefore,
  isLookingUp,
  lookUpAgain,
  nothingFound,
  outsideId,
} from '#kernel/task/forgotten-execution.ts'
import type { GasCharge } from '#kernel/task/gas-charge.ts'
import type { EvmBatch, EvmCall, EvmIntent, Policy, PolicyReceipt, Signer } from '#kernel/task/signer.ts'
import { trialMsMax, unlessAway } from '#kernel/task/sponsored-effect.ts'
import type {
  Intent,
  JsonObject,
  NonceSequence,
  SignedEffect,
  SignFirst,
  StepResultOf,
  TaskView,
  Tx,
} from '#kernel/task/task.ts'
import { canonicalJson } from '#kernel/wire/json.ts'
import type { ComparedHash } from '#store/record-found-effect.ts'
import type { AccountState, Evm, Simulation } from '#upstreams/evm/evm.ts'
import type { Fees } from '#upstreams/evm/fees.ts'
import {
  type BatchOptions,
  type BatchPlan,
  type BatchTaskData,
  batchGas,
  type ExecutedBatch,
  effectKind,
} from './batch-plan.ts'
import { type ConfirmDeps, confirmBatch } from './confirm.ts'
import { deadlineOf } from './deadline.ts'
import type { EvmPort } from './evm-chain-parts.ts'
import { costRose, failureOf } from './failures-before-signing.ts'
import { type ExecutedOrder, executedBatch, settleFound } from './settle-found-batch.ts'
import { createSponsorLoad, nonceKind, type SponsorLoad } from './sponsor-load.ts'
import { exceedsCharge, type GasBudget } from './user-gas-budget.ts'

/** Runs calls from the user's account as one sponsored transaction, as the driver of an effect. */

export type EvmBatches = {
  /** Throws before a task exists if the chain is not served or no sponsor can pay. */
  ready(chainId: string, options?: { fullExit: boolean }): Promise<void>
  /** Returns the amount that a batch charges to the user's gas budget, as a part of the admission's spend. */
  gasCharge(order: ChargeOrder): Promise<GasCharge>
  simulate(chainId: string, account: string, calls: readonly EvmCall[]): Promise<Simulation>
  /** Simulates the batch of an admission, and reads everything else that its signature needs. */
  trial(asker: TrialAsker, plan: BatchPlan): Promise<BatchTrial>
  /** Returns the first batch that the account has executed under an execution id, or undefined if there is none. */
  executed(order: ExecutedOrder): Promise<ExecutedBatch | undefined>
  /** Ends the charge of a batch that was never mined, when its task ends with another execution. */
  releaseGas(tx: Tx, taskId: string): Promise<void>
  driver<Data extends BatchTaskData, Proof, Names extends string = 'sign' | 'confirm'>(
    options: BatchOptions<Data, Proof>,
  ): EffectDriver<Data, BatchPlan, Proof, Names>
}

export type BatchTrial = {
  simulation: Simulation
  /**
   * Signs at the acceptance with what was read for the simulation, so that nothing is simulated twice. Returns
   * undefined if these readings are too old.
   */
  signOnAccept: SignFirst<'confirm'>
}
/** The terms by which a batch is charged: `gas` is what its simulation needs, `gasMin` the plan's own minimum. */
export type ChargeOrder = {
  chainId: string
  gas: bigint
  gasMin?: bigint
  fullExit: boolean
  isExit?: boolean
}

type EvmBatchesDeps = {
  gasBudget: GasBudget
  ports: ReadonlyMap<string, EvmPort>
  policy: Pick<Policy, 'authorize' | 'authorizeOnAccept'>
  signer: Signer
  nonces: Pick<NonceSequences, 'ensure' | 'nextNonces' | 'take'>
  startNonce: (chain: Evm, signer: string) => Promise<bigint>
  /** Compares the nonce counters with a chain, and holds the chain's money if they show a lost commit. */
  reconcileNonces: (chainId: string) => Promise<unknown>
  comparedHash: ComparedHash
  assertFree: (chainId: string) => void
  clock: Clock
}
type BatchReadings = { account: AccountState; gas: bigint; fees: Fees }
/** A task as its signature needs it; before its acceptance a task has no effects. */
type SignedTask = Pick<TaskView, 'id' | 'executionId' | 'userId'> & Partial<Pick<TaskView, 'effects'>>

export function createEvmBatches(deps: EvmBatchesDeps): EvmBatches {
  const { gasBudget, comparedHash, ports, policy, signer, nonces, assertFree, clock } = deps

  const portOf = (chainId: string): EvmPort => {
    const port = ports.get(chainId)
    if (!port) throw chainNotServed(chainId)
    if (port.chain.row.delegate) return port
    throw new Fault('unavailable', `Sponsored transactions are not available on chain ${chainId}`)
  }

  const openSequence = openedSequences(deps)

  const loads = loadsOf(deps)

  const confirmDeps: ConfirmDeps = {
    portOf,
    nonces,
    gasBudget,
    onNonceUsed: (chainId) => loads.get(chainId)?.invalidate(),
  }

  const preparing = { policy, signer, portOf, openSequence, loads }

  const sign = async <Data extends BatchTaskData, Proof, Names extends string>(
    options: BatchOptions<Data, Proof>,
    task: TaskView<Data>,
    plan: BatchPlan,
    context: SignContext<Data, Proof, Names>,
  ): Promise<StepResultOf<Partial<Data>, Names>> => {
    const { now, steps } = context
    const port = portOf(plan.chainId)
    const [looked, read] = await Promise.allSettled([
      port.chain.account(plan.account, outsideId(task)),
      Promise.all([
        port.chain.simulate(plan.account, plan.calls),
        port.sponsor.fees(),
        gasBudget.chargedWei(task.id, plan.chainId),
      ]),
    ])
    if (looked.status === 'rejected') {
      if (!(looked.reason instanceof Fault) || outsideId(task) === undefined) throw looked.reason
      const sought = { chain_id: plan.chainId, kind: effectKind }
      return lookUpAgain({ task, context }, { state: 'reconciling', note: looked.reason.message, sought })
    }
    const account = looked.value
    if (account.executedTimes > executedBefore(task, { kind: effectKind, chainId: plan.chainId }))
      return settleFound({ ...options, port, gasBudget, comparedHash, task, plan, context })
    if (isLookingUp(task)) return nothingFound<Data, Names>(steps.sign)
    const refused = await plan.refusal?.()
    if (refused) return refused
    if (read.status === 'rejected') throw read.reason
    const [simulation, fees, chargedWei] = read.value
    const unable = failureOf(port.chain.row, plan, { account, simulation })
    if (unable || !simulation.ok) return unable!
    const gas = gasOf(port.chain, plan, simulation.gas)
    // A full withdrawal is sent at any fee, because its calls are only those of the vault, and none that the user
    // chose.
    if (!plan.fullExit && exceedsCharge(fees.maxFeeWei * gas, chargedWei)) return costRose(port.chain.row)
    const prepared = await prepareBatch(preparing, task, plan, { account, gas, fees, now })
    return { sign: prepared.sign, next: steps.confirm, state: 'signed' }
  }

  const trial: EvmBatches['trial'] = async ({ userId, executionId }, plan) => {
    const { chain, sponsor } = portOf(plan.chainId)
    const readAtMs = clock.now().getTime()
    const [account, simulation, fees, authorize] = await Promise.all([
      chain.account(plan.account, executionId),
      chain.simulate(plan.account, plan.calls),
      sponsor.fees(),
      policy.authorizeOnAccept(userId, plan.chainId),
    ])
    const signFirst: BatchTrial['signOnAccept'] = async (task, { now }) => {
      const ageMs = now.getTime() - readAtMs
      const isFresh = ageMs >= 0 && ageMs <= trialMsMax
      const isExecuted = account.executedTimes > 0n || outsideId(task) !== executionId
      if (!simulation.ok || account.hasOtherCode || !isFresh || isExecuted) return undefined
      const gas = gasOf(chain, plan, simulation.gas)
      const prepared = await prepareBatch(preparing, task, plan, { account, gas, fees, now })
      const { receipt, ...granted } = authorize(prepared.intent)
      const signNonce = await prepared.signUnder(receipt)
      const signInOrder = async () => ({ ...granted, sign: signNonce })
      return { sign: { ...prepared.sign, signInOrder }, next: 'confirm', state: 'signed' }
    }
    return {
      simulation,
      signOnAccept: unlessAway(signFirst),
    }
  }

  return {
    async ready(chainId, options = { fullExit: false }) {
      assertFree(chainId)
      await portOf(chainId).sponsor.ready(options)
    },
    async gasCharge({ gas: simulatedGas, gasMin, chainId, ...exit }) {
      const { chain, sponsor } = portOf(chainId)
      const { maxFeeWei } = await sponsor.fees()
      const units = maxFeeWei * batchGas({ simulatedGas, gasMin }, chain.row.gas)
      return gasBudget.chargeOf({ chainId, units, ...exit })
    },
    releaseGas: (tx, taskId) => gasBudget.settle(tx, taskId, 0n),
    simulate: (chainId, account, calls) => portOf(chainId).chain.simulate(account, calls),
    trial,
    executed: (batch) => executedBatch({ ...portOf(batch.chainId), comparedHash }, batch),
    driver: (options) => ({
      sign: (task, plan, context) => sign(options, task, plan, context),
      confirm: (task, settle, context) => confirmBatch(confirmDeps, { ...options, task, settle }, context),
    }),
  }
}

function openedSequences({ nonces, startNonce }: Pick<EvmBatchesDeps, 'nonces' | 'startNonce'>) {
  const opened = new Set<string>()
  return async ({ chain }: EvmPort, nonceSequence: NonceSequence): Promise<void> => {
    const key = `${nonceSequence.chain}:${nonceSequence.signer}`
    if (opened.has(key)) return
    await nonces.ensure(nonceSequence, await startNonce(chain, nonceSequence.signer))
    opened.add(key)
  }
}

const loadsOf = ({
  ports,
  nonces,
  reconcileNonces,
}: Pick<EvmBatchesDeps, 'ports' | 'nonces' | 'reconcileNonces'>) =>
  new Map(
    [...ports].map(([id, port]) => {
      const onUnknownNonces = () => reconcileNonces(id)
      return [id, createSponsorLoad({ ...port, nonces, onUnknownNonces })]
    }),
  )

type PrepareDeps = Pick<EvmBatchesDeps, 'policy' | 'signer'> & {
  portOf(chainId: string): EvmPort
  openSequence(port: EvmPort, nonceSequence: NonceSequence): Promise<void>
  loads: ReadonlyMap<string, SponsorLoad>
}

/** Prepares the intent under the least busy sponsor. The account signs it before the sponsor's nonce is taken. */
async function prepareBatch(
  { policy, signer, portOf, openSequence, loads }: PrepareDeps,
  task: SignedTask,
  plan: BatchPlan,
  { now, ...readings }: BatchReadings & { now: Date },
) {
  const port = portOf(plan.chainId)
  const { chain, sponsor } = port
  const { account, gas, fees } = readings
  const { payer, mined } = await loads.get(plan.chainId)!.pick({ fullExit: plan.fullExit ?? false })
  const nonceSequence = { kind: nonceKind, chain: plan.chainId, signer: payer }
  await openSequence(port, nonceSequence)
  const nowSeconds = Math.floor(now.getTime() / 1_000)
  const intent = intentOf(task, plan, { chain, payer, account, nowSeconds })
  const signUnder = async (receipt: PolicyReceipt) => {
    const signed = await signer.signBatch(intent, receipt)
    const { batchHash, sign: signTx } = sponsor.prepareBatchTx({
      intent,
      signed,
      receipt,
      signer: payer,
      gas,
      fees,
    })
    const effect = {
      kind: effectKind,
      externalId: batchHash,
      intent: JSON.parse(canonicalJson(intent)) as JsonObject,
      signed: JSON.parse(canonicalJson(signed)) as JsonObject,
      policyReceipt: receipt.id,
      validUntil: later(new Date(0), intent.batch.deadlineSeconds * 1_000),
    }
    return async (nonce: bigint): Promise<SignedEffect> => ({ effect, txAttempt: await signTx(nonce) })
  }
  const build: Intent['build'] = async (tx) => signUnder(await policy.authorize(tx, intent))
  // Other transactions of the signer on this chain have used the nonces below `mined`.
  return { intent, signUnder, sign: { nonceSequence, minNonce: mined, build } }
}

const gasOf = ({ row }: Pick<Evm, 'row'>, { gasMin }: Pick<BatchPlan, 'gasMin'>, simulatedGas: bigint) =>
  batchGas({ simulatedGas, gasMin }, row.gas)

type BatchContext = {
  chain: Evm
  payer: string
  account: AccountState
  nowSeconds: number
}

function intentOf(task: SignedTask, plan: BatchPlan, { chain, payer, account, nowSeconds }: BatchContext) {
  const {
    calls,
    account: address,
    spends,
    chainId,
    minBlock: _minBlock,
    gasMin: _gasMin,
    validUntil,
    fullExit: _fullExit,
    refusal: _refusal,
    ...action
  } = plan
  const delegate = chain.row.delegate!
  const deadlineSeconds = deadlineOf({
    nowSeconds,
    headSeconds: account.head.timestampSeconds,
    ttlSeconds: chain.row.batchTtlSeconds,
    validUntil,
  })
  const batch: EvmBatch = {
    chainId,
    account: address,
    delegate,
    calls,
    deadlineSeconds,
    nonce: chain.batchNonce(task.executionId, executedBefore(task, { kind: effectKind, chainId })),
    executor: payer,
  }
  const delegated = account.delegate?.toLowerCase() === delegate.toLowerCase()
  const delegation = delegated ? null : { chainId, delegate, nonce: account.nonce }
  const intent: EvmIntent = {
    type: 'evm_batch',
    userId: task.userId,
    taskId: task.id,
    chainId,
    spends,
    batch,
    delegation,
    ...action,
  }
  return intent
}
