import type { SolanaDepository } from '#kernel/money/chains.ts'
import {
  type DecodedInstruction,
  type SvmDecoder,
  type SvmIntent,
  type SvmMessageAccount,
  transferOperation,
} from '#kernel/task/signer.ts'
import { assertRule } from './assert-rule.ts'

/** What custody knows about Solana comes from configuration and never from a quote. */
export type SigningSvmChain = {
  chainId: string
  /** The sponsor's accounts; no other account pays for a message that a user signs. */
  feePayers: readonly string[]
  /** The address that stands for SOL wherever a token is given by its address. */
  native: string
  /** Tokens that may leave a wallet, and the most units of one signature; null leaves the cap to the policy. */
  maxUnits: Readonly<Record<string, bigint | null>>
  /** Programs whose instructions custody signs undecoded; only the simulation limits what they take. */
  programs: readonly string[]
  /** Relay's program, which takes deposits; absent if nothing is swapped. */
  depository?: SolanaDepository | undefined
  /** The most that the priority of one message may cost. */
  maxPriorityLamports: bigint
  /** The wallet that takes payments for credits, and the most of one payment; absent if none are taken. */
  till?: { address: string; maxUnits: bigint } | undefined
}

const instructionsMax = 32
const tokenAccountsMax = 4
const computeUnitsMax = 1_400_000n
const microLamports = 1_000_000n
/** The longest message in base64: a message fits into one packet, and base64 adds a third. */
const base64Max = 1_700

type Context = { intent: SvmIntent; own: string; chain: SigningSvmChain; decoder: SvmDecoder }
type NamedInstruction<Name extends DecodedInstruction['name']> = Extract<DecodedInstruction, { name: Name }>
type Outflow = { token: string; amountUnits: bigint; to: string }

type SvmIntentCheck = Omit<Context, 'chain'> & { chain: SigningSvmChain | undefined }

/** Decodes every instruction and throws at the first deviation from the intent; returns the bytes to sign. */
export function assertSvmIntent({ chain, ...check }: SvmIntentCheck): Uint8Array {
  const { intent, own, decoder } = check
  assertRule(
    chain !== undefined && chain.chainId === intent.chainId,
    'chain',
    'custody does not sign for this chain',
  )
  const context = { ...check, chain }
  assertRule(intent.account === own, 'account', "the account is not the user's own wallet")
  assertRule(
    chain.feePayers.includes(intent.feePayer),
    'fee_payer',
    'the fee payer is no account of the sponsor',
  )
  assertRule(intent.feePayer !== own, 'fee_payer', 'the user would pay the fee')
  assertRule(intent.message.length <= base64Max, 'message', 'the message is too long')
  const bytes = Buffer.from(intent.message, 'base64')
  const message = decoder.decodeMessage(bytes)
  assertRule(message !== undefined, 'message', 'custody cannot decode the message')
  const signers = [intent.feePayer, own].join()
  assertRule(message.signers.join() === signers, 'signers', 'the signers are not the fee payer and the user')
  const { instructions } = message
  assertRule(
    instructions.length <= instructionsMax,
    'instructions',
    'the number of instructions is out of range',
  )
  const decoded = instructions.map((instruction) => {
    const found = decoder.decodeInstruction(instruction)
    if (!found) assertForeign(instruction, context)
    return found
  })
  const known = decoded.filter((each) => each !== undefined)
  assertPriority(known, chain)
  const created = known.filter(({ name }) => name === 'create_token_account').length
  assertRule(created <= tokenAccountsMax, 'token_accounts', 'too many token accounts are created')
  const outflows = known.flatMap((each) => assertInstruction(each, context) ?? [])
  assertOutflows(outflows, context)
  assertPayment(outflows, known, context)
  return bytes
}

/** Whatever goes to the wallet that takes payments for credits has to be one payment for the task of the intent. */
function assertPayment(
  outflows: readonly Outflow[],
  instructions: readonly DecodedInstruction[],
  { intent, chain: { till, native } }: Context,
): void {
  if (!till || outflows.every(({ to }) => to !== till.address)) return
  const [payment, ...others] = outflows
  assertRule(
    payment !== undefined && others.length === 0 && payment.token === native,
    'payment',
    'a payment is the only transfer of its message',
  )
  const memos = instructions.flatMap((each) => (each.name === 'memo' ? [each.text] : []))
  assertRule(memos.length === 1 && memos[0] === intent.taskId, 'payment', 'the payment is for another task')
  const listedUnits = intent.spends.reduce((sum, { amountUnits }) => sum + amountUnits, 0n)
  assertRule(payment.amountUnits === listedUnits, 'payment', 'the payment is not the spend of the intent')
  assertRule(payment.amountUnits <= till.maxUnits, 'cap', 'the payment exceeds the cap per signature')
}

/** An instruction of a configured program gets the user's signature, but never that of the fee payer. */
function assertForeign(
  { programId, accounts }: { programId: string; accounts: readonly SvmMessageAccount[] },
  { intent, chain }: Context,
): void {
  assertRule(chain.programs.includes(programId), 'program', 'custody cannot decode the instruction')
  assertRule(
    accounts.every(({ address }) => address !== intent.feePayer),
    'fee_payer',
    'an instruction names the fee payer',
  )
}

/** Checks one instruction, and returns the tokens that leave the wallet by it. */
function assertInstruction(decoded: DecodedInstruction, context: Context): Outflow | undefined {
  const { intent, own, chain, decoder } = context
  switch (decoded.name) {
    case 'transfer_lamports':
      assertRule(decoded.from === own, 'source', "the coins are not the user's own")
      return { token: chain.native, amountUnits: decoded.lamports, to: decoded.to }
    case 'transfer_tokens':
      assertRule(decoded.authority === own, 'authority', 'the user does not authorise the transfer')
      assertRule(decoded.source !== decoded.to, 'source', 'the transfer ends where it begins')
      return { token: decoded.mint, amountUnits: decoded.amountUnits, to: receiverOf(decoded, context) }
    case 'create_token_account': {
      assertRule(decoded.payer === intent.feePayer, 'rent', 'the fee payer does not pay the rent')
      // The rent belongs to the account's owner, so a recipient could close the account and get a new one paid each time.
      const owners = intent.operation === transferOperation ? [own] : [own, ...intent.recipients]
      assertRule(
        owners.includes(decoded.owner),
        'owner',
        'the token account is of an owner that is not listed',
      )
      const { owner, mint, tokenProgram } = decoded
      const derived = decoder.tokenAccountOf(owner, mint, tokenProgram)
      assertRule(decoded.account === derived, 'token_account', "the token account is not the owner's own one")
      return undefined
    }
    case 'close_token_account':
      assertRule(decoded.owner === own, 'owner', "the closed account is not the user's own")
      // The fee payer has paid every rent, because custody signs no message in which somebody else pays it.
      assertRule(decoded.to === intent.feePayer, 'receiver', 'the rent would not go back to the fee payer')
      return undefined
    case 'bridge':
      return assertDeposit(decoded, context)
    case 'memo':
      assertRule(
        decoded.signers.every((signer) => signer === own),
        'signers',
        'another account signs the memo',
      )
      return undefined
    default:
      return undefined
  }
}

/** The deposit goes to the configured vault and counts for the user, so that only the user can be refunded. */
function assertDeposit(
  { program, state, sender, depositor, vault, token, amountUnits }: NamedInstruction<'bridge'>,
  { own, chain: { depository, native }, decoder }: Context,
): Outflow {
  assertRule(depository?.program === program, 'program', 'the program is not configured')
  assertRule(depository.state === state, 'depository', 'the settings of the depository are not its own')
  assertRule(depository.vault === vault, 'depository', 'the vault is not that of the depository')
  assertRule(sender === own, 'source', "the deposit is not the user's own")
  assertRule(depositor === own, 'depositor', 'the deposit counts for another account')
  assertRule(amountUnits > 0n, 'amount', 'the deposit is empty')
  if (token === null) return { token: native, amountUnits, to: vault }
  const { mint, tokenProgram, source, vaultAccount } = token
  const accountOf = (owner: string) => decoder.tokenAccountOf(owner, mint, tokenProgram)
  assertRule(source === accountOf(own), 'source', "the tokens are not the user's own")
  assertRule(vaultAccount === accountOf(vault), 'depository', 'the tokens would not go to the vault')
  return { token: mint, amountUnits, to: vault }
}

/** A listed owner receives in the token account that derives from its address. A token account may itself be listed. */
function receiverOf(
  { to, mint, tokenProgram }: NamedInstruction<'transfer_tokens'>,
  { intent, decoder }: Context,
): string {
  const listed = [...intent.recipients, ...intent.spends.map((spend) => spend.to)]
  if (listed.includes(to)) return to
  return listed.find((owner) => decoder.tokenAccountOf(owner, mint, tokenProgram) === to) ?? to
}

function assertPriority(
  instructions: readonly DecodedInstruction[],
  { maxPriorityLamports }: SigningSvmChain,
) {
  let units = computeUnitsMax
  let price = 0n
  for (const each of instructions) {
    if (each.name === 'compute_limit') units = each.units
    if (each.name === 'compute_price') price = each.microLamports
  }
  assertRule(units <= computeUnitsMax, 'compute', 'the compute limit is out of range')
  assertRule(
    units * price <= maxPriorityLamports * microLamports,
    'priority',
    'the priority costs more than the cap',
  )
}

/** Custody's caps hold even if every layer above custody is compromised. */
function assertOutflows(outflows: readonly Outflow[], { intent, chain }: Context): void {
  const sums = new Map<string, Outflow>()
  for (const { token, amountUnits, to } of outflows) {
    assertRule(intent.recipients.includes(to), 'recipient', 'the recipient is not listed in the intent')
    const key = `${token} ${to}`
    sums.set(key, { token, to, amountUnits: (sums.get(key)?.amountUnits ?? 0n) + amountUnits })
  }
  for (const { token, to, amountUnits } of sums.values()) {
    const listedUnits = intent.spends
      .filter((spend) => spend.token === token && spend.to === to)
      .reduce((sum, spend) => sum + spend.amountUnits, 0n)
    assertRule(amountUnits <= listedUnits, 'spend', 'the transfer is more than the intent spends')
  }
  for (const token of new Set(outflows.map((each) => each.token))) {
    const max = chain.maxUnits[token]
    assertRule(max !== undefined, 'token', 'custody does not allow this token to leave a wallet')
    const units = outflows
      .filter((each) => each.token === token)
      .reduce((sum, each) => sum + each.amountUnits, 0n)
    assertRule(max === null || units <= max, 'cap', 'the message releases more than the cap per signature')
  }
}
