import { Fault } from '#kernel/fault.ts'
import type { EvmCall, EvmIntent, EvmScheme, PolicyReceipt, ReadCall, SigningIntent } from '#kernel/signer.ts'
import { intentHash } from '#kernel/signer.ts'

/** What custody itself knows of a chain, from configuration and never from a quote. */
export type SigningChain = {
  chainId: string
  /** The only code that a user's account may be delegated to. */
  delegate: string
  /** Contracts that a batch may call, beside the tokens: vaults, depositories. */
  contracts: readonly string[]
  /** Tokens that may leave a wallet, each with the most units that one signature may release. */
  mostUnits: Readonly<Record<string, bigint>>
  /** Its operator can set its clock, as with a local chain, so its deadlines cannot be compared with our clock. */
  turnsTime?: boolean
}

const deadlineSecondsMost = 3600
const callsMost = 16
const uint256 = 1n << 256n
/** EVM addresses are one account in any case. */
const fold = (address: string) => address.toLowerCase()
const same = (a: string, b: string) => fold(a) === fold(b)
const holds = (list: readonly string[], address: string) => list.some((each) => same(each, address))

function demand(holdsTrue: boolean, rule: string, reason: string): asserts holdsTrue {
  if (!holdsTrue)
    throw new Fault('policy_denied', `Custody refuses to sign: ${reason}`, {
      extras: { rule: `signer_${rule}`, reason },
    })
}

type Judged = { intent: SigningIntent; receipt: PolicyReceipt; now: Date; genuine: boolean }

export function judgeReceipt({ intent, receipt, now, genuine }: Judged): void {
  demand(genuine, 'receipt', 'the receipt was not made by the policy')
  demand(receipt.expiresAt > now, 'receipt_expired', 'the receipt has expired')
  demand(receipt.intentHash === intentHash(intent), 'receipt_intent', 'the receipt is for another intent')
  const matches = receipt.userId === intent.userId && receipt.taskId === intent.taskId
  demand(matches, 'receipt_owner', 'the receipt is for another user or task')
}

function judgeFrame(intent: EvmIntent, own: string, chain: SigningChain | undefined, now: Date) {
  const { batch, delegation } = intent
  demand(chain !== undefined, 'chain', 'custody does not sign for this chain')
  const chains = [chain.chainId, intent.chainId, batch.chainId, delegation?.chainId ?? chain.chainId]
  demand(new Set(chains).size === 1, 'chain', 'the parts of the intent name different chains')
  demand(same(batch.account, own), 'account', "the batch runs on another account than the user's own")
  const delegates = [batch.delegate, delegation?.delegate ?? chain.delegate]
  demand(
    delegates.every((each) => same(each, chain.delegate)),
    'delegate',
    'the delegate is not the configured one',
  )
  const nonce = delegation?.nonce ?? 0
  demand(Number.isSafeInteger(nonce) && nonce >= 0, 'nonce', 'the nonce of the delegation is out of range')
  demand(batch.nonce >= 0n && batch.nonce < uint256, 'nonce', 'the nonce of the batch is out of range')
  const leftSeconds = batch.deadlineSeconds - now.getTime() / 1000
  const bounded = Number.isSafeInteger(batch.deadlineSeconds) && leftSeconds > 0
  demand(
    bounded && (leftSeconds <= deadlineSecondsMost || chain.turnsTime === true),
    'deadline',
    'the deadline is not within the next hour',
  )
  demand(
    batch.calls.length > 0 && batch.calls.length <= callsMost,
    'calls',
    'the number of calls is not served',
  )
  return chain
}

type Frame = { intent: EvmIntent; own: string; chain: SigningChain }

/** Units that leave by this call, and of what token. */
type Released = { token: string; amountUnits: bigint }

function judgeRead(read: ReadCall, call: EvmCall, { intent, own, chain }: Frame): Released | null {
  if (read.name === 'approve' || read.name === 'transfer')
    demand(same(read.token, call.to), 'target', 'the call is not to the token that it names')
  else demand(same(read.vault, call.to), 'target', 'the call is not to the vault that it names')
  switch (read.name) {
    case 'approve': {
      demand(holds(chain.contracts, read.spender), 'spender', 'the spender is not a configured contract')
      const listed = intent.spends.some(
        ({ token, spender, amountUnits }) =>
          same(token, read.token) && same(spender, read.spender) && amountUnits === read.amountUnits,
      )
      demand(listed, 'approval', 'the approval is not a spend of the intent')
      return read
    }
    case 'transfer':
      demand(holds(intent.recipients, read.to), 'recipient', 'the recipient is not one of the intent')
      return read
    case 'deposit': {
      demand(same(read.receiver, own), 'receiver', "the shares would not go to the user's own account")
      const units = intent.spends.filter((each) => same(each.spender, read.vault))
      const most = units.reduce((sum, each) => sum + each.amountUnits, 0n)
      demand(read.assetsUnits <= most, 'deposit', 'the deposit is more than the intent spends')
      break
    }
    case 'withdraw':
    case 'redeem':
      demand(same(read.receiver, own), 'receiver', "the assets would not go to the user's own account")
      demand(same(read.owner, own), 'owner', "the shares are not the user's own")
  }
  demand(holds(chain.contracts, read.vault), 'contract', 'the contract is not a configured one')
  return null
}

/** Custody's own caps, in units: they hold even where everything above custody is taken over. */
function judgeReleased(released: Released[], chain: SigningChain): void {
  const caps = new Map(Object.entries(chain.mostUnits).map(([token, most]) => [fold(token), most]))
  const sums = new Map<string, bigint>()
  for (const { token, amountUnits } of released)
    sums.set(fold(token), (sums.get(fold(token)) ?? 0n) + amountUnits)
  for (const [token, units] of sums) {
    const most = caps.get(token)
    demand(most !== undefined, 'token', 'custody does not let this token leave a wallet')
    demand(units <= most, 'cap', 'the batch releases more than one signature may')
  }
}

type Asked = {
  intent: EvmIntent
  own: string
  chain: SigningChain | undefined
  now: Date
  readCall: EvmScheme['readCall']
}

/** Decodes every call and throws at the first thing that the intent does not say. */
export function judgeIntent({ intent, own, chain: asked, now, readCall }: Asked): void {
  const chain = judgeFrame(intent, own, asked, now)
  const released: Released[] = []
  for (const call of intent.batch.calls) {
    demand(call.value === 0n, 'value', 'the call carries native value')
    const read = readCall(call)
    demand(read !== undefined, 'selector', 'the call is not one that custody understands')
    const units = judgeRead(read, call, { intent, own, chain })
    if (units && units.amountUnits > 0n) released.push(units)
  }
  judgeReleased(released, chain)
}
