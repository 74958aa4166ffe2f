import type {
  OutcomeOrderAction,
  PredictionAction,
  RelayedAction,
  WalletCall,
} from '#kernel/money/prediction-actions.ts'
import type { EvmCrypto, PredictionIntent } from '#kernel/task/signer.ts'
import { assertRule, isSameAddress } from './assert-rule.ts'

/** What custody knows about a prediction market comes from configuration and never from the venue's replies. */
export type SigningPredictionVenue = {
  venue: string
  chainId: string
  /** The wallets of an owner at the venue, as their addresses derive from the owner. */
  walletsOf: (owner: string) => readonly { kind: string; wallet: string }[]
  /** The token in which the venue counts cash. */
  cashToken: string
  /** The contracts that orders are settled by, as the venue names them. */
  exchanges: readonly string[]
  /** The contracts that may take cash and shares of a wallet. */
  spenders: readonly string[]
  /** The contracts that turn dollars into cash. */
  ramps: readonly string[]
  /** The contracts of outcome shares, whose shares a spender may be allowed to take. */
  shareTokens: readonly string[]
  /** The contracts that redeem shares. */
  redeemers: readonly string[]
  /** The only code on whose behalf orders are placed. */
  builder: string
  /** The most cash that one signature may spend, in micro-dollars. */
  maxMicros: bigint
  /** The operations that may call for each kind of a wallet's calls. */
  operations: {
    approve: readonly string[]
    withdraw: readonly string[]
    redeem: readonly string[]
    fund: readonly string[]
    migrate: readonly string[]
  }
  /** Whether the operator can set the venue's clock, so that its times cannot be compared. */
  hasSettableClock?: boolean
}

const dayMs = 86_400_000
const saltMax = 2n ** 53n - 1n
const callsMax = 40
const deadlineSecondsMax = 3_600
const word = /^0x[0-9a-fA-F]{64}$/
const zeroWord = `0x${'0'.repeat(64)}`

type Check = {
  intent: PredictionIntent
  own: string
  venue: SigningPredictionVenue
  now: Date
  readCall: EvmCrypto['decodeCall']
}

const isListed = (list: readonly string[], address: string) =>
  list.some((each) => isSameAddress(each, address))

function assertTime(timeMs: number, { venue, now }: Pick<Check, 'venue' | 'now'>): void {
  assertRule(
    Number.isSafeInteger(timeMs) &&
      timeMs > 0 &&
      (venue.hasSettableClock === true || Math.abs(timeMs - now.getTime()) < dayMs),
    'time',
    'the time is more than a day away from the current one',
  )
}

function assertOrder(order: OutcomeOrderAction, check: Check): void {
  const { intent, own, venue } = check
  const isOwn = venue
    .walletsOf(own)
    .some(({ kind, wallet }) => kind === order.walletKind && isSameAddress(wallet, order.wallet))
  assertRule(isOwn, 'account', "the order would trade for a wallet that is not the user's own")
  assertRule(venue.exchanges.includes(order.exchange), 'contract', 'the exchange is not configured')
  assertRule(order.salt >= 0n && order.salt <= saltMax, 'nonce', 'the salt is out of range')
  assertRule(/^[0-9]{1,78}$/.test(order.outcomeId), 'outcome', 'the outcome is no id')
  assertRule(
    order.makerUnits > 0n && order.takerUnits > 0n,
    'size',
    'what the order gives or takes is not above zero',
  )
  assertRule(word.test(order.metadata), 'metadata', 'the metadata is no word')
  assertRule(order.metadata === zeroWord, 'metadata', 'the metadata is not empty')
  assertRule(isSameAddress(order.builder, venue.builder), 'builder', 'the order names another builder')
  assertTime(order.timestampMs, check)
  if (order.side === 'sell') {
    // A share pays at most one dollar, so a sale never takes more dollars than it gives shares.
    assertRule(order.takerUnits <= order.makerUnits, 'price', 'the price is above one dollar')
    return
  }
  assertRule(order.makerUnits <= order.takerUnits, 'price', 'the price is above one dollar')
  assertRule(!intent.exit, 'exit', 'an exit would buy')
  assertRule(
    order.makerUnits <= intent.usdMicros,
    'notional',
    'the order spends more than the value declared to the policy',
  )
  assertRule(order.makerUnits <= venue.maxMicros, 'cap', 'the order spends more than the cap per signature')
}

type WalletCheck = Check & { wallet: string }

/** Checks one call of a wallet, and returns the cash that it sends to the owner. */
function assertWalletCall(call: WalletCall, check: WalletCheck): bigint {
  const { intent, own, venue, wallet, readCall } = check
  assertRule(call.value === 0n, 'value', 'the call carries native value')
  const read = readCall(call)
  assertRule(read !== undefined, 'selector', 'custody cannot decode the call')
  const does = (kind: keyof SigningPredictionVenue['operations']) =>
    venue.operations[kind].includes(intent.operation)
  const isDepositWallet = (address: string) =>
    venue.walletsOf(own).some((each) => each.kind === 'deposit_wallet' && isSameAddress(each.wallet, address))
  switch (read.name) {
    case 'approve': {
      const isRamp = (does('fund') || does('migrate')) && isListed(venue.ramps, read.spender)
      const isCash = does('approve') && isSameAddress(read.token, venue.cashToken)
      assertRule(
        isRamp || (isCash && isListed(venue.spenders, read.spender)),
        'approval',
        'the approval is none that the venue needs',
      )
      return 0n
    }
    case 'approve_shares':
      assertRule(
        does('approve') && isListed(venue.shareTokens, read.token) && isListed(venue.spenders, read.operator),
        'approval',
        'the approval is none that the venue needs',
      )
      return 0n
    case 'transfer': {
      const isOwn = does('withdraw') && isSameAddress(read.to, own)
      assertRule(
        isSameAddress(read.token, venue.cashToken) &&
          (isOwn || (does('migrate') && isDepositWallet(read.to))),
        'recipient',
        "the cash would not go to the user's own wallet",
      )
      return isOwn ? read.amountUnits : 0n
    }
    case 'move_shares':
      assertRule(
        does('migrate') &&
          isListed(venue.shareTokens, read.token) &&
          isSameAddress(read.from, wallet) &&
          isDepositWallet(read.to),
        'recipient',
        "the shares would not go to the user's own wallet",
      )
      return 0n
    case 'redeem_shares':
      assertRule(
        does('redeem') && isListed(venue.redeemers, read.contract),
        'contract',
        'the contract does not redeem shares',
      )
      return 0n
    case 'wrap_cash':
      assertRule(
        (does('fund') || does('migrate')) && isListed(venue.ramps, read.ramp) && isDepositWallet(read.to),
        'receiver',
        "the cash would not go to the user's own wallet",
      )
      return 0n
    default:
      assertRule(false, 'selector', 'the wallet does not make such calls')
  }
}

function assertBatch(action: RelayedAction, check: Check): void {
  const { own, venue, now } = check
  const wallet = action.type === 'wallet_batch' ? action.wallet : action.safe
  const kind = action.type === 'wallet_batch' ? 'deposit_wallet' : 'safe'
  const isOwn = venue.walletsOf(own).some((each) => each.kind === kind && isSameAddress(each.wallet, wallet))
  assertRule(isOwn, 'account', "the calls would run on a wallet that is not the user's own")
  assertRule(action.nonce >= 0n, 'nonce', 'the nonce is out of range')
  assertRule(
    action.calls.length > 0 && action.calls.length <= callsMax,
    'calls',
    'the number of calls is out of range',
  )
  if (action.type === 'wallet_batch') {
    const leftSeconds = action.deadlineSeconds - now.getTime() / 1_000
    assertRule(
      venue.hasSettableClock === true || (leftSeconds > 0 && leftSeconds <= deadlineSecondsMax),
      'deadline',
      'the deadline is not within the next hour',
    )
  }
  const sent = action.calls.map((call) => assertWalletCall(call, { ...check, wallet }))
  assertRule(
    sent.reduce((sum, units) => sum + units, 0n) <= venue.maxMicros,
    'cap',
    'the calls send more than the cap per signature',
  )
}

/** Checks an intent, and returns the action to sign; an action that needs no signature is refused. */
export function assertPredictionIntent(check: Check): PredictionAction {
  const { intent, own, venue } = check
  const { action } = intent
  assertRule(venue.chainId === intent.chainId, 'venue', 'custody does not sign for this venue')
  assertRule(isSameAddress(intent.account, own), 'account', "the account is not the user's own wallet")
  assertRule(action.type !== 'create_wallet', 'action', 'the action needs no signature')
  assertRule(isSameAddress(action.owner, own), 'signer', 'the owner is not the key of the account')
  if (action.type === 'order') assertOrder(action, check)
  else if (action.type === 'sign_in') assertTime(action.timestampSeconds * 1_000, check)
  else assertBatch(action, check)
  return action
}
