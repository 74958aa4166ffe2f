import { createHash } from 'node:crypto'
import { Fault } from '#kernel/contract/fault.ts'
import { mulDiv } from '#kernel/money/money.ts'
import type { DecodedMessage, SvmInstruction, SvmSpend } from '#kernel/task/signer.ts'
import { feePayerViolation } from './fee-payer-rule.ts'
import { closeTokenAccount, computeLimit, computePrice, createTokenAccount } from './instruction-builder.ts'
import { checkedAddresses, svmDecoder } from './instruction-decoder.ts'
import {
  compileMessage,
  decodeMessage,
  joinTransaction,
  type LookupTable,
  type MessagePlan,
} from './message.ts'
import { computeBudgetProgram } from './program-ids.ts'
import { readTrial } from './simulation-check.ts'
import type { LatestBlockhash, Solana, Trial } from './solana.ts'

/** A transaction before it is signed: composed from a section's plan, simulated and checked. */

export type DraftOrder = {
  account: string
  feePayer: string
  instructions: readonly SvmInstruction[]
  /** Addresses of lookup tables. One that does not exist only makes the message longer. */
  lookupTables: readonly string[]
  spends: readonly SvmSpend[]
  /** Equal orders with different ids are different transactions. */
  id: string
  reference?: string | undefined
  /** A simulation at an older slot fails as unavailable. */
  minSlot?: bigint | undefined
}
export type Draft = {
  /** The message in base64. */
  message: string
  lastValidBlockHeight: bigint
  /** The slot of the node that supplied the blockhash. */
  slot: bigint
  feeLamports: bigint
  /** The rent of the token accounts that the transaction creates. */
  rentLamports: bigint
}
export type DraftResult = { ok: true; draft: Draft } | { ok: false; reason: string; slot: bigint }

const unitsMax = 1_400_000
const lamportsPerSignature = 5_000n
const microLamports = 1_000_000n
/** An execution a moment later may take more compute units than its simulation. */
const spareUnits = 5_000
/**
 * The compute limit is varied over this many values, so that equal orders become different messages: the network
 * executes each message only once.
 */
const distinctUnits = 16_384
const signatureBytes = 64
const simulationsMax = 3
const baselineUnits = 1_000

export async function draftTransaction(chain: Solana, order: DraftOrder): Promise<DraftResult> {
  const instructions = order.instructions
    .filter(({ programId }) => programId !== computeBudgetProgram)
    .map((instruction) => withRentPayer(instruction, order))
  const [blockhash, tables, prices] = await Promise.all([
    chain.latestBlockhash(),
    chain.lookupTables(order.lookupTables),
    chain.recentPrices(writableOf(instructions)).catch(() => []),
  ])
  const price = priceOf(chain, prices)
  const compose = (units: number) => composed({ order, instructions, tables, blockhash, units, price })
  const trial = await simulateDraft(chain, order, { bytes: compose(unitsMax), blockhash })
  if (!trial.ok) return trial
  const units = Math.min(
    unitsMax,
    Math.ceil(Number(trial.units) * 1.15) + spareUnits + distinctUnitsOf(order.id),
  )
  const bytes = compose(units)
  const { slot, lastValidBlockHeight } = blockhash
  return {
    ok: true,
    draft: {
      message: Buffer.from(bytes).toString('base64'),
      lastValidBlockHeight,
      slot,
      feeLamports: feeOf(decodeMessage(bytes)),
      rentLamports: trial.rentLamports,
    },
  }
}

/**
 * Makes the sponsor pay rent, as a user without SOL cannot, and get the rent back; else users would earn the rent
 * by closing accounts.
 */
function withRentPayer(instruction: SvmInstruction, { account, feePayer }: DraftOrder): SvmInstruction {
  const decoded = decode({
    ...instruction,
    data: instruction.data === '' || instruction.data === '00' ? '01' : instruction.data,
  })
  if (decoded?.name === 'close_token_account' && decoded.owner === account) {
    const { programId: tokenProgram } = instruction
    return closeTokenAccount({ account: decoded.account, tokenProgram }, account, feePayer)
  }
  if (decoded?.name !== 'create_token_account' || ![account, feePayer].includes(decoded.payer))
    return instruction
  return createTokenAccount(decoded, decoded.owner, feePayer)
}

const decode = ({ data, ...instruction }: SvmInstruction) =>
  svmDecoder.decodeInstruction({ ...instruction, data: Buffer.from(data, 'hex') })

const writableOf = (instructions: readonly SvmInstruction[]): string[] => [
  ...new Set(
    instructions.flatMap(({ accounts }) =>
      accounts.filter(({ isWritable }) => isWritable).map(({ address }) => address),
    ),
  ),
]

/** Returns the compute price that three of four recent transactions did not exceed; throws above the cap. */
function priceOf({ row }: Solana, prices: readonly bigint[]): bigint {
  const { priceFloorMicroLamports: floor, priceCapMicroLamports: cap } = row.fees
  const sorted = [...prices].sort((a, b) => (a < b ? -1 : 1))
  const recent = sorted[Math.floor((sorted.length * 3) / 4)] ?? 0n
  const price = recent > floor ? recent : floor
  if (price <= cap) return price
  throw new Fault('unavailable', `Fees on ${row.displayName} exceed the cap at present`, {
    extras: { reason: 'fees_above_cap' },
  })
}

const distinctUnitsOf = (id: string): number =>
  createHash('sha256').update(id).digest().readUInt32LE(0) % distinctUnits

type Composition = {
  order: DraftOrder
  instructions: readonly SvmInstruction[]
  tables: readonly LookupTable[]
  blockhash: LatestBlockhash
  units: number
  price: bigint
}

const referenceIn = ({ reference }: DraftOrder): string[] => (reference === undefined ? [] : [reference])

function composed({ order, instructions, tables, blockhash, units, price }: Composition): Uint8Array {
  const plan: MessagePlan = {
    feePayer: order.feePayer,
    instructions: [computeLimit(units, referenceIn(order)), computePrice(price), ...instructions],
    tables,
    staticAddresses: [
      ...referenceIn(order),
      ...instructions.flatMap((instruction) => {
        const decoded = decode(instruction)
        return decoded ? checkedAddresses(decoded) : []
      }),
    ],
    blockhash: blockhash.blockhash,
  }
  return compileMessage(plan)
}

function feeOf({ signers, instructions }: DecodedMessage): bigint {
  let [units, price] = [BigInt(unitsMax), 0n]
  for (const instruction of instructions) {
    const decoded = svmDecoder.decodeInstruction(instruction)
    if (decoded?.name === 'compute_limit') units = decoded.units
    if (decoded?.name === 'compute_price') price = decoded.microLamports
  }
  return BigInt(signers.length) * lamportsPerSignature + mulDiv(units, price, microLamports, 'up')
}

type SimulatedDraft = { ok: true; units: bigint; rentLamports: bigint } | Extract<DraftResult, { ok: false }>

/** Repeats the simulation if another transaction came between it and its baseline. */
async function simulateDraft(
  chain: Solana,
  order: DraftOrder,
  { bytes, blockhash }: { bytes: Uint8Array; blockhash: LatestBlockhash },
): Promise<SimulatedDraft> {
  const message = decodeMessage(bytes)
  const isSignedByBoth = message.signers.join() === [order.feePayer, order.account].join()
  const violation = isSignedByBoth
    ? feePayerViolation(message, order.feePayer)
    : 'the signers are not the fee payer and the user'
  if (violation)
    throw new Fault(
      'policy_denied',
      `The sponsor does not pay for this: ${violation}. Ask for another quote; if it happens again, report it to the operator`,
      { extras: { rule: 'sponsor', reason: violation } },
    )
  const accounts = watchedAccounts(message, order)
  const baseline = baselineOf(order, blockhash, accounts)
  const request = {
    raw: unsigned(bytes),
    baselineRaw: unsigned(baseline),
    message: Buffer.from(bytes).toString('base64'),
    accounts,
    minSlot: order.minSlot,
  }
  for (let left = simulationsMax; ; left--) {
    const trial: Trial = await chain.simulate(request)
    const { simulation, baseline: unchanged } = trial
    if (!unchanged.ok)
      throw new Fault(
        'unavailable',
        `The ${chain.row.displayName} node cannot simulate yet, as it lacks the account that pays the fee; try again`,
      )
    if (!simulation.ok) return { ok: false, reason: simulation.reason, slot: simulation.slot }
    const feeLamports = maxOf(feeOf(message), trial.feeLamports ?? 0n)
    const found = readTrial({
      ...order,
      trial,
      accounts,
      feeLamports,
      baselineFeeLamports: feeOf(decodeMessage(baseline)),
      native: chain.row.native.address,
    })
    if (!found.violation) return { ok: true, units: simulation.units, rentLamports: found.rentLamports }
    if (left > 1) continue
    if (simulation.slot !== unchanged.slot)
      throw new Fault('unavailable', `The ${chain.row.displayName} nodes disagree; try again later`)
    throw new Fault('policy_denied', `The simulated transaction ${found.violation}`, {
      extras: { rule: 'simulation', reason: found.violation },
    })
  }
}

/**
 * Builds a transaction of the fee payer that changes nothing. It names the watched accounts, which the budget
 * program ignores, because a node shows only accounts that a transaction names. The draft's message contains
 * them all, so this one is shorter.
 */
const baselineOf = (
  { feePayer }: DraftOrder,
  { blockhash }: LatestBlockhash,
  watched: readonly string[],
): Uint8Array =>
  compileMessage({
    feePayer,
    instructions: [computeLimit(baselineUnits, watched)],
    tables: [],
    staticAddresses: [],
    blockhash,
  })

const unsigned = (message: Uint8Array): string => {
  const signatures = decodeMessage(message).signers.map(() => new Uint8Array(signatureBytes))
  return Buffer.from(joinTransaction(signatures, message)).toString('base64')
}

const maxOf = (a: bigint, b: bigint): bigint => (a > b ? a : b)

/** Returns the accounts whose balances are compared. An undecodable instruction may change any of its accounts. */
function watchedAccounts({ instructions }: DecodedMessage, { account, feePayer }: DraftOrder): string[] {
  const named = instructions.flatMap((instruction) => {
    const decoded = svmDecoder.decodeInstruction(instruction)
    if (decoded?.name === 'transfer_tokens') return [decoded.source]
    if (decoded?.name === 'bridge') return decoded.token === null ? [] : [decoded.token.source]
    if (decoded?.name === 'create_token_account') return [decoded.account]
    // Closing an account of wrapped SOL would take the SOL out of the wallet together with the rent.
    if (decoded?.name === 'close_token_account') return [decoded.account]
    if (decoded) return []
    return instruction.accounts.filter(({ isWritable }) => isWritable).map(({ address }) => address ?? '')
  })
  return [...new Set([feePayer, account, ...named.filter((each) => each !== '')])]
}
