import { nativeSentinel } from '#kernel/money/chains.ts'
import {
  type DecodedCall,
  type EvmCall,
  type EvmCrypto,
  type EvmIntent,
  intentHash,
  type OutcomeCall,
  type PaymentCall,
  type PolicyReceipt,
  type SigningIntent,
  type SwapCall,
  transferOperation,
} from '#kernel/task/signer.ts'
import { assertRule, isSameAddress } from './assert-rule.ts'
import { assertPayment, type SigningTill } from './credit-payment-rules.ts'
import {
  assertApprovalsUsed,
  assertSwapCall,
  isSwapCall,
  type SigningSwaps,
  swapSpenders,
  type Taken,
} from './swap-rules.ts'

/** What custody knows about a chain comes from configuration and never from a quote. */
export type SigningChain = {
  chainId: string
  /** The only code that a user's account may be delegated to. */
  delegate: string
  /** The contracts that a batch may call besides the tokens: vaults and depositories. */
  contracts: readonly string[]
  /** The contracts of swaps; absent if nothing is swapped on the chain. */
  swaps?: SigningSwaps
  /** The contracts that turn dollars into the cash of a prediction market, and the wallets of an owner there. */
  ramps?: { contracts: readonly string[]; walletsOf: (owner: string) => readonly string[] }
  /** The contract that takes payments for credits; absent if no credits are sold on the chain. */
  till?: SigningTill
  /** Tokens that may leave a wallet, each with the most units that one signature may release. */
  maxUnits: Readonly<Record<string, bigint>>
  /** Whether the operator can set the chain's clock, as on a local chain, so that its deadlines cannot be compared. */
  hasSettableClock?: boolean
}

const deadlineSecondsMax = 3600
const callsMax = 16
const uint256 = 1n << 256n
const normalize = (address: string) => address.toLowerCase()
const includesAddress = (list: readonly string[], address: string) =>
  list.some((each) => isSameAddress(each, address))

type ReceiptCheck = { intent: SigningIntent; receipt: PolicyReceipt; now: Date; isAuthentic: boolean }

export function assertReceipt({ intent, receipt, now, isAuthentic }: ReceiptCheck): void {
  assertRule(isAuthentic, 'receipt', 'the policy did not issue the receipt')
  assertRule(receipt.expiresAt > now, 'receipt_expired', 'the receipt has expired')
  assertRule(receipt.intentHash === intentHash(intent), 'receipt_intent', 'the receipt is for another intent')
  const matches = receipt.userId === intent.userId && receipt.taskId === intent.taskId
  assertRule(matches, 'receipt_owner', 'the receipt is for another user or task')
}

function assertBatch(intent: EvmIntent, own: string, chain: SigningChain | undefined, now: Date) {
  const { batch, delegation } = intent
  assertRule(chain !== undefined, 'chain', 'custody does not sign for this chain')
  const chains = [chain.chainId, intent.chainId, batch.chainId, delegation?.chainId ?? chain.chainId]
  assertRule(new Set(chains).size === 1, 'chain', 'the parts of the intent name different chains')
  assertRule(
    isSameAddress(batch.account, own),
    'account',
    "the batch runs on an account that is not the user's own",
  )
  const delegates = [batch.delegate, delegation?.delegate ?? chain.delegate]
  assertRule(
    delegates.every((each) => isSameAddress(each, chain.delegate)),
    'delegate',
    'the delegate is not the configured contract',
  )
  const nonce = delegation?.nonce ?? 0
  assertRule(
    Number.isSafeInteger(nonce) && nonce >= 0,
    'nonce',
    'the nonce of the delegation is out of range',
  )
  assertRule(batch.nonce >= 0n && batch.nonce < uint256, 'nonce', 'the nonce of the batch is out of range')
  const leftSeconds = batch.deadlineSeconds - now.getTime() / 1000
  const isBounded = Number.isSafeInteger(batch.deadlineSeconds) && leftSeconds > 0
  assertRule(
    isBounded && (leftSeconds <= deadlineSecondsMax || chain.hasSettableClock === true),
    'deadline',
    'the deadline is not within the next hour',
  )
  assertRule(
    batch.calls.length > 0 && batch.calls.length <= callsMax,
    'calls',
    'the number of calls is out of range',
  )
  return chain
}

/** Native coins leave a wallet only as the one spend of a transfer to a recipient of the user. */
function assertSend(read: Extract<DecodedCall, { name: 'send' }>, { intent, chain }: BatchContext): Outflow {
  const [spend, ...others] = intent.spends
  assertRule(
    intent.operation === transferOperation && intent.batch.calls.length === 1,
    'send',
    'native coins are sent by a transfer alone',
  )
  const isListed = includesAddress(intent.recipients, read.to)
  assertRule(isListed, 'recipient', 'native coins go to a recipient of the intent')
  const isSpend =
    spend !== undefined &&
    others.length === 0 &&
    isSameAddress(spend.token, nativeSentinel) &&
    isSameAddress(spend.spender, read.to) &&
    read.amountUnits === spend.amountUnits
  assertRule(isSpend, 'spend', 'what is sent is not the spend of the intent')
  assertRule(
    chain.maxUnits[normalize(nativeSentinel)] !== undefined,
    'token',
    'custody has no cap of the native coin',
  )
  return { token: nativeSentinel, spender: read.to, amountUnits: read.amountUnits }
}

type BatchContext = { intent: EvmIntent; own: string; chain: SigningChain }

type Outflow = Taken

/** Cash of a prediction market goes to a wallet of the user there, and dollars to the user's own account. */
function assertRamp(read: OutcomeCall, call: EvmCall, { intent, own, chain }: BatchContext): void {
  assertRule(
    read.name === 'wrap_cash' || read.name === 'unwrap_cash',
    'selector',
    'the account itself has no shares',
  )
  const { ramps } = chain
  assertRule(
    ramps !== undefined && isSameAddress(read.ramp, call.to) && includesAddress(ramps.contracts, read.ramp),
    'contract',
    'the contract is not configured',
  )
  const receivers = read.name === 'wrap_cash' ? ramps.walletsOf(own) : [own]
  assertRule(
    includesAddress(receivers, read.to),
    'receiver',
    "the money would not go to the user's own wallet",
  )
  const units = intent.spends.filter((each) => isSameAddress(each.spender, read.ramp))
  const max = units.reduce((sum, each) => sum + each.amountUnits, 0n)
  assertRule(read.amountUnits <= max, 'deposit', 'the ramp takes more than the intent spends')
}

const isOutcomeCall = (read: DecodedCall): read is OutcomeCall =>
  read.name === 'wrap_cash' ||
  read.name === 'unwrap_cash' ||
  read.name === 'approve_shares' ||
  read.name === 'move_shares' ||
  read.name === 'redeem_shares'

function assertCall(
  read: Exclude<DecodedCall, SwapCall | PaymentCall | OutcomeCall | { name: 'send' }>,
  call: EvmCall,
  { intent, own, chain }: BatchContext,
): Outflow | null {
  if (read.name === 'approve' || read.name === 'transfer')
    assertRule(
      isSameAddress(read.token, call.to),
      'target',
      'the call does not target the token that it names',
    )
  else
    assertRule(
      isSameAddress(read.vault, call.to),
      'target',
      'the call does not target the vault that it names',
    )
  switch (read.name) {
    case 'approve': {
      assertRule(
        includesAddress(
          [...chain.contracts, ...(chain.ramps?.contracts ?? []), ...swapSpenders(chain.swaps)],
          read.spender,
        ),
        'spender',
        'the spender is not a configured contract',
      )
      const listed = intent.spends.some(
        ({ token, spender, amountUnits }) =>
          isSameAddress(token, read.token) &&
          isSameAddress(spender, read.spender) &&
          amountUnits === read.amountUnits,
      )
      assertRule(listed, 'approval', 'the approval is not a spend of the intent')
      return read
    }
    case 'transfer':
      assertRule(
        includesAddress(intent.recipients, read.to),
        'recipient',
        'the recipient is not listed in the intent',
      )
      return { token: read.token, spender: read.to, amountUnits: read.amountUnits }
    case 'deposit': {
      assertRule(
        isSameAddress(read.receiver, own),
        'receiver',
        "the shares would not go to the user's own account",
      )
      const units = intent.spends.filter((each) => isSameAddress(each.spender, read.vault))
      const max = units.reduce((sum, each) => sum + each.amountUnits, 0n)
      assertRule(read.assetsUnits <= max, 'deposit', 'the deposit is more than the intent spends')
      break
    }
    case 'withdraw':
    case 'redeem':
      assertRule(
        isSameAddress(read.receiver, own),
        'receiver',
        "the assets would not go to the user's own account",
      )
      assertRule(isSameAddress(read.owner, own), 'owner', "the shares are not the user's own")
  }
  assertRule(includesAddress(chain.contracts, read.vault), 'contract', 'the contract is not configured')
  return null
}

/** Custody's caps, in units, hold even if every layer above custody is compromised. */
function assertCaps(outflows: Outflow[], chain: SigningChain): void {
  const caps = new Map(Object.entries(chain.maxUnits).map(([token, max]) => [normalize(token), max]))
  const sums = new Map<string, bigint>()
  const spenders = swapSpenders(chain.swaps)
  for (const { token, amountUnits, spender } of outflows) {
    // A token without a cap, such as one that is on no list, can only be sold or bridged.
    if (!caps.has(normalize(token)) && includesAddress(spenders, spender)) continue
    sums.set(normalize(token), (sums.get(normalize(token)) ?? 0n) + amountUnits)
  }
  for (const [token, units] of sums) {
    const max = caps.get(token)
    assertRule(max !== undefined, 'token', 'custody does not allow this token to leave a wallet')
    assertRule(units <= max, 'cap', 'the batch releases more than the cap per signature')
  }
}

type IntentCheck = {
  intent: EvmIntent
  own: string
  chain: SigningChain | undefined
  now: Date
  readCall: EvmCrypto['decodeCall']
}

/** Decodes every call and throws at the first deviation from the intent. */
export function assertIntent({ intent, own, chain: asked, now, readCall }: IntentCheck): void {
  const chain = assertBatch(intent, own, asked, now)
  const { swaps } = chain
  const outflows: Outflow[] = []
  const taken: Taken[] = []
  for (const call of intent.batch.calls) {
    const read = readCall(call)
    assertRule(read !== undefined, 'selector', 'custody cannot decode the call')
    if (isSwapCall(read)) {
      const units = assertSwapCall(read, call, { intent, own, swaps })
      if (units) taken.push(units)
      continue
    }
    if (read.name === 'pay') {
      assertPayment(read, { intent, till: chain.till })
      continue
    }
    if (read.name === 'send') {
      outflows.push(assertSend(read, { intent, own, chain }))
      continue
    }
    assertRule(call.value === 0n, 'value', 'the call carries native value')
    if (isOutcomeCall(read)) {
      assertRamp(read, call, { intent, own, chain })
      continue
    }
    const units = assertCall(read, call, { intent, own, chain })
    if (units && units.amountUnits > 0n) outflows.push(units)
  }
  assertApprovalsUsed(outflows, taken, swaps)
  const natives = taken.filter(({ token }) => swaps !== undefined && isSameAddress(token, swaps.native))
  assertCaps([...outflows, ...natives], chain)
}
