import type { TransactionSerializableEIP1559, TransactionSerializableEIP7702 } from 'viem'
import { privateKeyToAddress, sign } from 'viem/accounts'
import { bytesToHex, keccak256, parseTransaction, serializeTransaction } from 'viem/utils'
import type { Clock } from '#kernel/clock.ts'
import { Fault } from '#kernel/fault.ts'
import { type EvmIntent, intentHash, type PolicyReceipt, type SignedBatch } from '#kernel/signer.ts'
import { batchHash, executeData } from './batch.ts'
import type { Evm } from './evm.ts'
import { type Fees, isValidReplacement, planReplacement, quoteFees, type Replacement } from './fees.ts'
import type { Hex } from './wire.ts'

export type SignedTx = { externalId: string; raw: string; nonce: bigint }
export type BatchTxOrder = {
  intent: EvmIntent
  signed: SignedBatch
  receipt: PolicyReceipt
  signer: string
  nonce: bigint
  gas: bigint
  fees: Fees
}

/** A whole withdrawal is carried also by what is kept back from everything else. */
export type SponsorOptions = { fullExit: boolean }

/** The accounts that pay for everybody's gas on one chain, one nonce lane each. */
export type Sponsor = {
  signers: readonly string[]
  /** Throws `unavailable` while no lane has the means to carry anything. */
  ready(options?: SponsorOptions): Promise<void>
  /** The lane with the fewest transactions under way, of those that can pay. */
  pick(inFlight: ReadonlyMap<string, number>, options?: SponsorOptions): Promise<string>
  /** What the chain costs now; throws `unavailable` above the cap. */
  fees(): Promise<Fees>
  signBatchTx(order: BatchTxOrder): Promise<SignedTx & { batchHash: string }>
  /** What may follow these bytes at their nonce; undefined once nothing may. */
  replacementOf(raw: string): Promise<Replacement | undefined>
  /** The same call under higher fees, or nothing at all under higher fees. */
  replace(raw: string, signer: string, plan: Replacement): Promise<SignedTx>
  /** The same call under another number, where other bytes of the signer took the first one. */
  reassignNonce(raw: string, signer: string, options: { nonce: bigint; fees: Fees }): Promise<SignedTx>
  /** A transaction that moves nothing and only takes its number. */
  fillNonce(signer: string, nonce: bigint): Promise<SignedTx>
}

type SponsorDeps = {
  chain: Evm
  /** The keys of the lanes, from configuration. */
  secrets: readonly Uint8Array[]
  clock: Clock
  /** Below this a lane carries nothing more. */
  balanceMinWei: bigint
  /** An operator has paused this account: it carries nothing new. */
  isPaused?: (signer: string) => Promise<boolean>
  /** Below this a lane carries no whole withdrawal either. */
  exitMinWei?: bigint
}

const balanceFreshMs = 5_000
const transferGas = 21_000n

type Unsigned = TransactionSerializableEIP1559 | TransactionSerializableEIP7702

export function sponsor({
  chain,
  secrets,
  clock,
  balanceMinWei,
  isPaused = async () => false,
  exitMinWei = balanceMinWei,
}: SponsorDeps): Sponsor {
  const { row } = chain
  const keys = new Map(
    secrets.map((secret) => {
      const key = bytesToHex(secret)
      return [privateKeyToAddress(key).toLowerCase(), key] as const
    }),
  )
  const signers = [...keys.keys()]
  let turn = 0
  let balances: { atMs: number; byAddress: Promise<Map<string, bigint>> } | undefined

  const keyOf = (signer: string): Hex => {
    const key = keys.get(signer.toLowerCase())
    if (!key) throw new Error(`no key for the lane ${signer}`)
    return key
  }

  const signTx = async (signer: string, transaction: Unsigned): Promise<SignedTx> => {
    const signature = await sign({
      hash: keccak256(serializeTransaction(transaction)),
      privateKey: keyOf(signer),
    })
    const raw = serializeTransaction(transaction, signature)
    return { externalId: keccak256(raw), raw, nonce: BigInt(transaction.nonce ?? 0) }
  }

  const readBalances = async (): Promise<Map<string, bigint>> =>
    new Map(await Promise.all(signers.map(async (signer) => [signer, await chain.balance(signer)] as const)))

  /** Signers that can pay, asked of the chain every few seconds. */
  const fundedSigners = async ({ fullExit }: SponsorOptions = { fullExit: false }): Promise<string[]> => {
    const atMs = performance.now()
    if (!balances || atMs - balances.atMs > balanceFreshMs) {
      const byAddress = readBalances()
      balances = { atMs, byAddress }
      byAddress.catch(() => {
        balances = undefined
      })
    }
    const known = await balances.byAddress
    const minWei = fullExit ? exitMinWei : balanceMinWei
    const paused = await Promise.all(signers.map(isPaused))
    const funded = signers.filter((signer, index) => !paused[index] && (known.get(signer) ?? 0n) >= minWei)
    if (funded.length > 0) return funded
    throw new Fault('unavailable', `Sponsored transactions on ${row.displayName} are paused`, {
      extras: { reason: 'sponsor_paused', budget: 'sponsor_balance', owner: 'platform', retry_after: 60 },
    })
  }

  const fees = async (): Promise<Fees> => {
    const { head, priorityWei } = await chain.suggestedPriority()
    const quoted = quoteFees(head.baseFeeWei, priorityWei, row.fees)
    if (quoted) return quoted
    throw new Fault('unavailable', `${row.displayName} costs more than we pay at present`, {
      extras: { reason: 'fees_above_cap' },
    })
  }

  const feeFields = (nonce: bigint, { maxFeeWei, priorityWei }: Fees) => ({
    chainId: Number(row.id),
    nonce: Number(nonce),
    maxFeePerGas: maxFeeWei,
    maxPriorityFeePerGas: priorityWei,
  })

  const emptyTx = (signer: string, nonce: bigint, price: Fees): Promise<SignedTx> =>
    signTx(signer, {
      type: 'eip1559',
      ...feeFields(nonce, price),
      to: signer as Hex,
      value: 0n,
      gas: transferGas,
    })

  return {
    signers,
    ready: async (options) => void (await fundedSigners(options)),

    async pick(inFlight, options) {
      const candidates = (await fundedSigners(options)).map((signer) => ({
        signer,
        busy: inFlight.get(signer) ?? 0,
      }))
      const fewest = Math.min(...candidates.map(({ busy }) => busy))
      // In turn among equals: many that choose at one moment see the same counts.
      const equals = candidates.filter(({ busy }) => busy === fewest)
      return equals[turn++ % equals.length]!.signer
    },

    fees,

    async signBatchTx({ intent, signed: batch, receipt, signer, nonce, gas, fees: price }) {
      const covers = receipt.intentHash === intentHash(intent) && receipt.expiresAt > clock.now()
      if (!covers || intent.chainId !== row.id)
        throw new Fault('policy_denied', 'The sponsor carries nothing without a receipt of the policy')
      const call = {
        ...feeFields(nonce, price),
        to: intent.batch.account as Hex,
        value: 0n,
        data: executeData(intent.batch, batch.signature),
        gas,
      }
      const id = { batchHash: batchHash(intent.batch) }
      const { delegation } = batch
      if (!delegation) return { ...id, ...(await signTx(signer, { type: 'eip1559', ...call })) }
      const { chainId, address, nonce: accountNonce, r, s, yParity } = delegation
      const authorization = {
        chainId,
        address: address as Hex,
        nonce: accountNonce,
        r: r as Hex,
        s: s as Hex,
        yParity,
      }
      const transaction = { type: 'eip7702', ...call, authorizationList: [authorization] } as const
      return { ...id, ...(await signTx(signer, transaction)) }
    },

    async replacementOf(raw) {
      const old = feesOf(raw)
      const { head, priorityWei } = await chain.suggestedPriority()
      return planReplacement(old, quoteFees(head.baseFeeWei, priorityWei, row.fees), row.fees.capWei)
    },

    async replace(raw, signer, { kind, fees: price }) {
      if (!isValidReplacement(feesOf(raw), price))
        throw new Error('a replacement has to beat both fees by an eighth')
      const old = unsignedOf(raw)
      const nonce = BigInt(old.nonce ?? 0)
      if (kind === 'cancel') return emptyTx(signer, nonce, price)
      return signTx(signer, { ...old, ...feeFields(nonce, price) } as Unsigned)
    },

    reassignNonce: (raw, signer, { nonce, fees: price }) =>
      signTx(signer, { ...unsignedOf(raw), ...feeFields(nonce, price) } as Unsigned),

    fillNonce: async (signer, nonce) => emptyTx(signer, nonce, await fees()),
  }
}

function unsignedOf(raw: string): Unsigned {
  const {
    r: _r,
    s: _s,
    v: _v,
    yParity: _y,
    ...unsigned
  } = parseTransaction(raw as Hex) as Unsigned & Signature
  return unsigned
}

type Signature = { r?: Hex; s?: Hex; v?: bigint; yParity?: number }

function feesOf(raw: string): Fees {
  const { maxFeePerGas, maxPriorityFeePerGas } = parseTransaction(raw as Hex)
  if (maxFeePerGas === undefined || maxPriorityFeePerGas === undefined)
    throw new Error('a carrier names no EIP-1559 fees')
  return { maxFeeWei: maxFeePerGas, priorityWei: maxPriorityFeePerGas }
}
