import type { Ledger } from '#durable/ledger/ledger.ts'
import type { EvmBatches } from '#engines/evm-batch/batch.ts'
import type { BatchPlan, BatchTaskData } from '#engines/evm-batch/batch-plan.ts'
import { readFreeUnits } from '#engines/free-units/free-units.ts'
import type { SvmTransactions } from '#engines/svm-transaction/transaction.ts'
import type { SvmPlan, SvmTaskData } from '#engines/svm-transaction/transaction-plan.ts'
import { conflict, Fault, invalid } from '#kernel/contract/fault.ts'
import { type InputOf, taskOf } from '#kernel/contract/operation.ts'
import { chainByRef, chainNotServed, tokenByRef } from '#kernel/contract/token-ref.ts'
import { balanceChange } from '#kernel/money/balance-changes.ts'
import { type Chain, type Token, toAssetId } from '#kernel/money/chains.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { fromUnits, valueMicros } from '#kernel/money/money.ts'
import { createAdmission } from '#kernel/task/admission.ts'
import { actionTerms, noFurtherCost } from '#kernel/task/approval.ts'
import { oneEffect } from '#kernel/task/effect-steps.ts'
import type { GasCharge } from '#kernel/task/gas-charge.ts'
import type { Principal } from '#kernel/task/policy-action.ts'
import {
  type EvmCall,
  type PlannedAction,
  type Policy,
  type SvmInstruction,
  transferOperation,
} from '#kernel/task/signer.ts'
import type { AccountRef, Steps, TaskView } from '#kernel/task/task.ts'
import type { Queryable } from '#store/query.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { Prices } from '#upstreams/prices/prices.ts'
import type { Solana } from '#upstreams/solana/solana.ts'
import type { contract } from './contract.ts'

/** A transfer sends native coins or tokens from the user's wallet to an effective recipient. */

export type TransferDeps = {
  db: Queryable
  ledger: Pick<Ledger, 'balance'>
  /** The chains on which wallets can send. */
  chains: readonly Chain[]
  evmOf(chainId: string): Pick<Evm, 'row' | 'balances' | 'transfers' | 'executed'> | undefined
  svmOf(chainId: string): Pick<Solana, 'row' | 'balance' | 'accounts'> | undefined
  batches: EvmBatches
  svm: SvmTransactions
  policy: Pick<Policy, 'check'>
  prices: Pick<Prices, 'get'>
  parseAddress(chain: Pick<Chain, 'family'>, text: string): string | undefined
  transferCall(token: string, to: string, amountUnits: bigint): EvmCall
  instructions: {
    transferLamports(from: string, to: string, lamports: bigint): SvmInstruction
    transferTokens(mint: Mint, from: string, to: string, amountUnits: bigint): SvmInstruction
  }
  tokenAccountOf(owner: string, mint: string, tokenProgram: string): string
  evmAddressOf: (userId: string) => Promise<string>
  svmAddressOf: (userId: string) => Promise<string>
  changed: (userId: string, chainId: string) => void
}
type Mint = { mint: string; decimals: number; tokenProgram: string }
type TransferInput = InputOf<typeof contract.entries.transfer>

type TransferTaskData = BatchTaskData &
  SvmTaskData & {
    chain_id: string
    token: string
    is_native: boolean
    account: string
    recipient: string
    amount_units: string
    usd_micros: string
    principal: Principal
    /** The token program of the mint, on Solana. */
    token_program: string
  }
export type TransferTask = TaskView<TransferTaskData>
type Terms = {
  chain: Chain
  token: Token
  isNative: boolean
  recipient: string
  amountUnits: bigint
  action: PlannedAction
}

const admissionMs = 10 * 60_000

export const createTransfer = (deps: TransferDeps) =>
  taskOf<TransferInput, TransferTaskData, 'sign' | 'confirm'>({
    admit: admitTransfer(deps),
    steps: transferSteps(deps),
    looksUp: true,
  })

async function checkTransfer(deps: TransferDeps, input: TransferInput, userId: string): Promise<Terms> {
  const chain = chainByRef(deps.chains, input.chain_id, 'chain_id')
  const found = tokenByRef(chain, input.token, 'token')
  if ('unlisted' in found)
    throw invalid('token', 'unsupported_asset', `Input should be a listed token of ${chain.displayName}`, {
      possible: [chain.native, ...chain.tokens].map(({ symbol }) => symbol),
    })
  const { token, isNative } = found
  const amountUnits = BigInt(input.amount)
  if (amountUnits === 0n) throw invalid('amount', 'greater_than', 'Input should be greater than 0', { gt: 0 })
  const recipient = deps.parseAddress(chain, input.recipient)
  if (recipient === undefined)
    throw invalid(
      'recipient',
      'invalid_recipient',
      'Input should be the address of a recipient, spelled as `recipients_list` has it',
    )
  const key = isNative ? chain.native.priceId : `${chain.llamaSlug}:${token.address}`
  const price = (await deps.prices.get([key])).get(key)
  if (!price) throw new Fault('unavailable', `There is no trusted price of ${token.symbol}; try again later`)
  const shown = fromUnits(amountUnits, token.decimals)
  const action: PlannedAction = {
    userId,
    operation: transferOperation,
    chainId: chain.id,
    tokens: [token.address],
    recipients: [recipient],
    usdMicros: valueMicros(amountUnits, token.decimals, price.price, 'up'),
    exit: false,
    terms: actionTerms(`Send ${shown} ${token.symbol} to ${recipient} on ${chain.displayName}`, {
      chain: chain.displayName,
      token: token.symbol,
      amount: shown,
      recipient,
      cost: noFurtherCost,
    }),
  }
  return { chain, token, isNative, recipient, amountUnits, action }
}

const admitTransfer = (deps: TransferDeps) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'first',
    check: (input: TransferInput, { userId }) => checkTransfer(deps, input, userId),
    fund: (terms, { executionId }) => fundTransfer(deps, terms, executionId),
    start({ chain, token, amountUnits, action }, { data, seen, gas }) {
      const wallet: AccountRef = {
        owner: action.userId,
        asset: toAssetId(chain, token.address),
        subAccount: 'wallet',
      }
      // A transfer is signed by its step, which reads the recipients again under the lock of the limits.
      const spend = { account: wallet, amountUnits, token, seen, gas }
      return { first: 'sign', deadlineMs: admissionMs, data, spend }
    },
  })

async function fundTransfer(deps: TransferDeps, terms: Terms, executionId: string | undefined) {
  const { chain, token, isNative, action, amountUnits: requiredUnits } = terms
  const { userId } = action
  const isEvm = chain.family === 'evm'
  const account = await (isEvm ? deps.evmAddressOf(userId) : deps.svmAddressOf(userId))
  await (isEvm ? deps.batches.ready(chain.id) : deps.svm.ready(chain.id))
  const wallet: AccountRef = { owner: userId, asset: toAssetId(chain, token.address), subAccount: 'wallet' }
  const read = async () => {
    const readTotal = () => unitsOf(deps, { chain, token, isNative, account })
    const balance = await readFreeUnits(deps, { account: wallet, readTotal, requiredUnits })
    const { totalUnits, freeUnits, version } = balance
    if (freeUnits >= requiredUnits) return { totalUnits, version }
    const shortage = { what: 'The transfer', requiredUnits, availableUnits: freeUnits }
    throw insufficientBalance({ ...token, chainId: chain.id }, shortage)
  }
  const seen = { ...(await read()), reread: read }
  const tokenProgram =
    isEvm || isNative ? '' : await programOf(deps, { chain, token, owner: terms.recipient })
  const data: TransferTaskData = {
    chain_id: chain.id,
    token: token.address,
    is_native: isNative,
    account,
    recipient: terms.recipient,
    amount_units: String(requiredUnits),
    usd_micros: String(action.usdMicros),
    principal: action.principal ?? 'agent',
    token_program: tokenProgram,
  }
  const gas = await chargeOf(deps, { chain, userId, executionId, data })
  return { data, seen, gas }
}

type Wallet = Pick<Terms, 'chain' | 'token' | 'isNative'> & { account: string }
async function unitsOf(deps: TransferDeps, { chain, token, isNative, account }: Wallet): Promise<bigint> {
  if (chain.family === 'solana') return deps.svmOf(chain.id)!.balance(account, token.address, isNative)
  const balances = await deps.evmOf(chain.id)!.balances(account, isNative ? [] : [token.address])
  return isNative ? balances.nativeUnits : (balances.tokens[0] ?? 0n)
}

type Receiving = Pick<Terms, 'chain' | 'token'> & { owner: string }

const noToken = 'The Solana node shows no token at this address: check it, or try again in a moment'

/**
 * Returns the program of the mint. The receiver must already have an account for the token: the rent of one
 * that the gateway made would belong to the receiver, who could close it for the coins again and again.
 */
async function programOf(deps: TransferDeps, { chain, token, owner }: Receiving): Promise<string> {
  const svm = deps.svmOf(chain.id)!
  const programId = (await svm.accounts([token.address])).accounts[0]?.owner
  if (programId === undefined) throw new Fault('unavailable', noToken)
  const { accounts } = await svm.accounts([deps.tokenAccountOf(owner, token.address, programId)])
  if (accounts[0]?.owner === programId) return programId
  const reason = `the recipient has no account for ${token.symbol}`
  throw conflict(`The transfer would fail: ${reason}; its owner opens one first`, reason)
}

type ChargeOrder = { chain: Chain; userId: string; executionId: string | undefined; data: TransferTaskData }
/** Simulates the transfer, and returns the gas that it charges to the user's sponsor budget. */
async function chargeOf(
  deps: TransferDeps,
  { chain, userId, executionId, data }: ChargeOrder,
): Promise<GasCharge> {
  const refuse = (reason: string) => conflict(`The transfer would fail: ${reason}`, reason)
  if (chain.family === 'solana') {
    const trial = await deps.svm.trial({ userId, executionId }, svmPlan(deps, data))
    if (!trial.ok) throw refuse(trial.reason)
    return trial.charge
  }
  const { account, calls } = evmPlan(deps, data)
  const simulation = await deps.batches.simulate(chain.id, account, calls)
  if (!simulation.ok) throw refuse(simulation.reason)
  return deps.batches.gasCharge({ chainId: chain.id, gas: simulation.gas, fullExit: false })
}

const actionOf = (data: TransferTaskData): Omit<PlannedAction, 'userId'> => ({
  operation: transferOperation,
  chainId: data.chain_id,
  tokens: [data.token],
  recipients: [data.recipient],
  usdMicros: BigInt(data.usd_micros),
  exit: false,
  principal: data.principal,
})

function evmPlan(deps: Pick<TransferDeps, 'transferCall'>, data: TransferTaskData): BatchPlan {
  const { token, account, recipient, is_native: isNative } = data
  const amountUnits = BigInt(data.amount_units)
  return {
    ...actionOf(data),
    account,
    calls: [
      isNative
        ? { to: recipient, value: amountUnits, data: '0x' }
        : deps.transferCall(token, recipient, amountUnits),
    ],
    spends: [{ token, amountUnits, spender: recipient }],
  }
}

function svmPlan({ instructions, chains }: TransferDeps, data: TransferTaskData): SvmPlan {
  const { token, account, recipient, is_native: isNative, token_program: tokenProgram } = data
  const amountUnits = BigInt(data.amount_units)
  const decimals =
    chains.find(({ id }) => id === data.chain_id)?.tokens.find(({ address }) => address === token)
      ?.decimals ?? 0
  const mint = { mint: token, decimals, tokenProgram }
  return {
    ...actionOf(data),
    account,
    instructions: isNative
      ? [instructions.transferLamports(account, recipient, amountUnits)]
      : [instructions.transferTokens(mint, account, recipient, amountUnits)],
    lookupTables: [],
    spends: [{ token, amountUnits, to: recipient }],
  }
}

export const transferResult = (data: TransferTaskData, symbol: string, txHash: string | null) => ({
  chain_id: data.chain_id,
  token_address: data.token,
  symbol,
  amount: data.amount_units,
  recipient: data.recipient,
  tx_hash: txHash,
})

type Proof = { txHash: string }

function transferSteps(deps: TransferDeps): Steps<TransferTaskData, 'sign' | 'confirm'> {
  const rowOf = ({ chain_id }: TransferTaskData) => {
    const row = deps.chains.find(({ id }) => id === chain_id)
    if (!row) throw chainNotServed(chain_id)
    return row
  }
  const tokenOf = (data: TransferTaskData): Token => {
    const row = rowOf(data)
    return [row.native, ...row.tokens].find(({ address }) => address === data.token)!
  }
  const settle = ({ data }: TransferTask, { txHash }: Proof) => ({
    end: 'completed' as const,
    outcome: 'executed' as const,
    result: transferResult(data, tokenOf(data).symbol, txHash),
    spent: BigInt(data.amount_units),
  })
  const onFinal = ({ userId, data }: TransferTask) => deps.changed(userId, data.chain_id)
  const evm = oneEffect({
    driver: deps.batches.driver<TransferTaskData, Proof>({
      prove: (task, receipt) => evmProof(deps, task, receipt),
      balanceChanges: ({ data }) => [balanceChange(data.chain_id, tokenOf(data), -BigInt(data.amount_units))],
      onFinal,
    }),
    plan: ({ data }: TransferTask) => evmPlan(deps, data),
    settle,
  })
  const svm = oneEffect({
    driver: deps.svm.driver<TransferTaskData, Proof>({
      prove({ data }, { signature, deltas, lamportDeltas }) {
        const units = BigInt(data.amount_units)
        const isPaid = data.is_native
          ? lamportDeltas.get(data.recipient) === units && lamportDeltas.get(data.account) === -units
          : deltas.some(({ token, amountUnits }) => token === data.token && amountUnits === -units)
        return isPaid ? { txHash: signature } : undefined
      },
      onFinal,
    }),
    plan: ({ data }: TransferTask) => svmPlan(deps, data),
    settle,
  })
  const effectOf = ({ data }: TransferTask) => (rowOf(data).family === 'evm' ? evm : svm)
  return {
    sign: (task, context) => effectOf(task).sign(task, context),
    confirm: (task, context) => effectOf(task).confirm(task, context),
  }
}

/** A native coin leaves no event. It was sent if the account has executed the batch, whose only call it is. */
async function evmProof(
  deps: TransferDeps,
  { executionId, data }: TransferTask,
  receipt: Parameters<Evm['transfers']>[0],
): Promise<Proof | undefined> {
  const chain = deps.evmOf(data.chain_id)
  if (!chain) throw chainNotServed(data.chain_id)
  const { txHash, block } = receipt
  if (data.is_native) {
    const { times } = await chain.executed(data.account, executionId, block)
    return times > 0n ? { txHash } : undefined
  }
  const isOwn = chain
    .transfers(receipt)
    .some(
      ({ token, from, to, amountUnits }) =>
        token.toLowerCase() === data.token.toLowerCase() &&
        from === data.account.toLowerCase() &&
        to === data.recipient.toLowerCase() &&
        amountUnits === BigInt(data.amount_units),
    )
  return isOwn ? { txHash } : undefined
}
