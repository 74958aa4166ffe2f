import type { NonceSequences } from '#durable/nonces.ts'
import type { Chain } from '#kernel/chains.ts'
import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { canonicalJson } from '#kernel/json.ts'
import type { EffectDriver } from '#kernel/one-effect.ts'
import type { EvmBatch, EvmCall, EvmIntent, Policy, Signer } from '#kernel/signer.ts'
import type {
  GasCharge,
  Intent,
  JsonObject,
  NonceSequence,
  StepContext,
  StepResultOf,
  TaskView,
} from '#kernel/task.ts'
import type { Evm, Simulation } from '#upstreams/evm/evm.ts'
import type { BatchOptions, BatchPlan, BatchTaskData } from './batch-rules.ts'
import { type ConfirmDeps, confirmBatch } from './confirm.ts'
import type { EvmPort } from './evm-port.ts'
import type { GasBudget } from './gas-budget.ts'
import { createSponsorLoad, nonceKind } from './sponsor-load.ts'

/** A batch of calls from the user's account in one sponsored transaction, as the driver of an effect. */

export type EvmBatches = {
  /** Throws before a task exists where the chain is not served or no sponsor can pay. */
  ready(chainId: string, options?: { fullExit: boolean }): Promise<void>
  /** Throws where the user's gas budget is too small; the charge belongs to the spend of the admission. */
  gasCharge(order: ChargeOrder): Promise<GasCharge>
  simulate(chainId: string, account: string, calls: readonly EvmCall[]): Promise<Simulation>
  /** The driver of an effect whose second step is called `confirm`. */
  driver<Data extends BatchTaskData, Proof, Names extends string = 'sign' | 'confirm'>(
    options: BatchOptions<Data, Proof>,
  ): EffectDriver<Data, BatchPlan, Proof, Names | 'confirm'>
}

export type ChargeOrder = { userId: string; chainId: string; gas: bigint; fullExit: boolean }

type EvmBatchesDeps = {
  gasBudget: GasBudget
  ports: ReadonlyMap<string, EvmPort>
  policy: Pick<Policy, 'authorize'>
  signer: Signer
  nonces: Pick<NonceSequences, 'ensure' | 'nextNonces' | 'take'>
  startNonce: (chain: Evm, signer: string) => Promise<bigint>
}

export const effectKind = 'evm_batch'

export function evmBatches({
  gasBudget,
  ports,
  policy,
  signer,
  nonces,
  startNonce,
}: EvmBatchesDeps): EvmBatches {
  const openedSequences = new Set<string>()

  const portOf = (chainId: string): EvmPort => {
    const port = ports.get(chainId)
    if (port?.chain.row.delegate) return port
    throw new Fault('unavailable', `Sponsored transactions are not available on chain ${chainId}`)
  }

  const openSequence = async ({ chain }: EvmPort, nonceSequence: NonceSequence): Promise<void> => {
    const key = `${nonceSequence.chain}:${nonceSequence.signer}`
    if (openedSequences.has(key)) return
    await nonces.ensure(nonceSequence, await startNonce(chain, nonceSequence.signer))
    openedSequences.add(key)
  }

  const loads = new Map([...ports].map(([id, port]) => [id, createSponsorLoad({ ...port, nonces })]))

  const confirmDeps: ConfirmDeps = {
    portOf,
    nonces,
    gasBudget,
    onNonceUsed: (chainId) => loads.get(chainId)?.invalidate(),
  }

  const sign = async (
    task: TaskView<BatchTaskData>,
    plan: BatchPlan,
    { now }: StepContext,
  ): Promise<StepResultOf<never, 'confirm'>> => {
    const port = portOf(plan.chainId)
    const { chain, sponsor } = port
    const [account, simulation, fees, { payer, mined }] = await Promise.all([
      chain.account(plan.account),
      chain.simulate(plan.account, plan.calls),
      sponsor.fees(),
      loads.get(plan.chainId)!.pick({ fullExit: plan.fullExit ?? false }),
    ])
    if (account.hasOtherCode) return notExecuted(chain.row, 'the account has the code of another contract')
    if (!simulation.ok) {
      const isOld = simulation.block !== undefined && simulation.block < (plan.minBlock ?? 0n)
      if (isOld)
        throw new Fault(
          'unavailable',
          `The ${chain.row.displayName} node is behind the chain; try again later`,
        )
      return notExecuted(chain.row, simulation.reason)
    }
    const nonceSequence = { kind: nonceKind, chain: plan.chainId, signer: payer }
    await openSequence(port, nonceSequence)
    const intent = intentOf(task, plan, {
      chain,
      payer,
      account,
      nowSeconds: Math.floor(now.getTime() / 1_000),
    })
    const build: Intent['build'] = async (tx) => {
      const receipt = await policy.authorize(tx, intent)
      const signed = await signer.signBatch(intent, receipt)
      const { batchHash, sign: signTx } = sponsor.prepareBatchTx({
        intent,
        signed,
        receipt,
        signer: payer,
        gas: simulation.gas,
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
      return async (nonce) => ({ effect, txAttempt: await signTx(nonce) })
    }
    // Other transactions of the signer on this chain have used the nonces below `mined`.
    return { sign: { nonceSequence, minNonce: mined, build }, next: 'confirm', state: 'signed' }
  }

  return {
    ready: async (chainId, options = { fullExit: false }) => portOf(chainId).sponsor.ready(options),
    async gasCharge({ gas, ...order }) {
      const { maxFeeWei } = await portOf(order.chainId).sponsor.fees()
      return gasBudget.chargeOf({ ...order, wei: maxFeeWei * gas })
    },
    simulate: (chainId, account, calls) => portOf(chainId).chain.simulate(account, calls),
    driver: (options) => ({
      sign,
      confirm: (task, settle, context) => confirmBatch(confirmDeps, { ...options, task, settle }, context),
    }),
  }
}

const notExecuted = (chain: Pick<Chain, 'displayName'>, reason: string) =>
  ({
    end: 'failed',
    outcome: 'not_executed',
    error: {
      code: 'tx_failed',
      message: `The transaction would fail: ${reason}`,
      retryable: false,
      upstream: chain.displayName,
    },
  }) as const

type BatchContext = {
  chain: Evm
  payer: string
  account: Awaited<ReturnType<Evm['account']>>
  nowSeconds: number
}

function intentOf(
  task: TaskView<BatchTaskData>,
  plan: BatchPlan,
  { chain, payer, account, nowSeconds }: BatchContext,
) {
  const {
    calls,
    account: address,
    spends,
    chainId,
    minBlock: _minBlock,
    fullExit: _fullExit,
    ...action
  } = plan
  const delegate = chain.row.delegate!
  // The chain enforces the deadline by its own clock, which can be ahead of ours.
  const deadlineSeconds = Math.max(nowSeconds, account.head.timestampSeconds) + chain.row.batchTtlSeconds
  const batch: EvmBatch = {
    chainId,
    account: address,
    delegate,
    calls,
    deadlineSeconds,
    nonce: chain.batchNonce(task.id),
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
