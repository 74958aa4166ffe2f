import { createCachedValue } from '#kernel/async/ttl-cache.ts'
import { type Clock, monotonicMs } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { intentHash, type PolicyReceipt, type SvmIntent } from '#kernel/task/signer.ts'
import { base58 } from './base58.ts'
import { feePayerViolation } from './fee-payer-rule.ts'
import { svmDecoder } from './instruction-decoder.ts'
import { joinTransaction } from './message.ts'
import { addressOfSecret, isSignedBy, signWith } from './sign.ts'
import type { Solana } from './solana.ts'

/** A full exit may also spend the reserve between `exitMinLamports` and `balanceMinLamports`. */
export type SponsorOptions = { fullExit: boolean }
/** The `signature` is the id of the transaction. */
export type SignedTransaction = { signature: string; raw: string }

/** The accounts that pay fees and rent for all users. */
export type SvmSponsor = {
  signers: readonly string[]
  /** Returns the lamports of each signer, which are read from the chain at most every few seconds. */
  balances(): Promise<ReadonlyMap<string, bigint>>
  /** Resolves if a signer can pay, and throws `unavailable` otherwise. */
  ready(options?: SponsorOptions): Promise<void>
  /** Returns one of the signers that can pay, in turn. */
  pick(options?: SponsorOptions): Promise<string>
  /** Adds the fee payer's signature of the intent's message to the user's, and checks both. */
  sign(order: SponsorOrder): SignedTransaction
}
export type SponsorOrder = { intent: SvmIntent; receipt: PolicyReceipt; userSignature: Uint8Array }

type SponsorDeps = {
  chain: Pick<Solana, 'row' | 'accounts'>
  secrets: readonly Uint8Array[]
  clock: Clock
  balanceMinLamports: bigint
  exitMinLamports: bigint
  /** Returns whether an operator has paused the signer, which then pays for nothing new. */
  isPaused: (signer: string) => Promise<boolean>
}

const balanceFreshMs = 5_000

export function createSvmSponsor(deps: SponsorDeps): SvmSponsor {
  const { chain, secrets, isPaused, balanceMinLamports, exitMinLamports } = deps
  const byAddress = new Map(secrets.map((secret) => [addressOfSecret(secret), secret]))
  const signers = [...byAddress.keys()]
  const readBalances = async (): Promise<Map<string, bigint>> => {
    if (signers.length === 0) return new Map()
    const { accounts } = await chain.accounts(signers)
    return new Map(signers.map((signer, index) => [signer, accounts[index]?.lamports ?? 0n]))
  }
  const balances = createCachedValue(readBalances, { ttlMs: balanceFreshMs, nowMs: monotonicMs })
  let picks = 0

  const fundedSigners = async ({ fullExit }: SponsorOptions = { fullExit: false }): Promise<string[]> => {
    const known = await balances.get()
    const minLamports = fullExit ? exitMinLamports : balanceMinLamports
    const paused = await Promise.all(signers.map(isPaused))
    const funded = signers.filter(
      (signer, index) => !paused[index] && (known.get(signer) ?? 0n) >= minLamports,
    )
    if (funded.length > 0) return funded
    throw new Fault('unavailable', `Sponsored transactions on ${chain.row.displayName} are paused`, {
      extras: { reason: 'sponsor_paused', budget: 'sponsor_balance', owner: 'platform', retry_after: 60 },
    })
  }

  return {
    signers,
    balances: () => balances.get(),
    ready: async (options) => void (await fundedSigners(options)),
    async pick(options) {
      const funded = await fundedSigners(options)
      return funded[picks++ % funded.length]!
    },
    sign: (order) => signBeside(deps, byAddress, order),
  }
}

const denied = (why: string) =>
  new Fault('policy_denied', `The sponsor does not sign: ${why}`, {
    extras: { rule: 'sponsor', reason: why },
  })

function signBeside(
  { chain, clock }: SponsorDeps,
  byAddress: ReadonlyMap<string, Uint8Array>,
  { intent, receipt, userSignature }: SponsorOrder,
): SignedTransaction {
  const { account, feePayer, chainId } = intent
  const covers = receipt.intentHash === intentHash(intent) && receipt.expiresAt > clock.now()
  if (!covers || chainId !== chain.row.id) throw denied('there is no valid policy receipt')
  const secret = byAddress.get(feePayer)
  if (!secret) throw denied('the fee payer is none of its accounts')
  const bytes = Buffer.from(intent.message, 'base64')
  const message = svmDecoder.decodeMessage(bytes)
  const violation = message ? feePayerViolation(message, feePayer) : 'the message cannot be decoded'
  if (!message || violation) throw denied(violation ?? 'the message cannot be decoded')
  const own = signWith(secret, bytes)
  const signatures = message.signers.map((signer) => {
    if (signer === feePayer) return own
    if (signer === account) return userSignature
    throw denied('the message asks for the signature of another account')
  })
  for (const [index, signer] of message.signers.entries())
    if (!isSignedBy(signer, bytes, signatures[index]!)) throw denied('a signature does not verify')
  const raw = Buffer.from(joinTransaction(signatures, bytes)).toString('base64')
  return { signature: base58(own), raw }
}
