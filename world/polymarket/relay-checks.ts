import { contracts } from './chain/addresses.ts'
import type { Address, Hex, SafeTransaction, WalletBatch, WalletCall } from './chain/chain-terms.ts'
import { isMultiSend, multiSendCalls, recoverBatch, recoverSafeTransaction } from './chain/wallets.ts'
import { HttpError } from './http.ts'

/** What the relayer calls, and whom it lets wallets approve. */
const targets: ReadonlySet<string> = new Set(
  [
    contracts.pusd,
    contracts.usdc,
    contracts.usdce,
    contracts.conditionalTokens,
    contracts.positionManager,
    contracts.collateralAdapter,
    contracts.negRiskCollateralAdapter,
    contracts.negRiskAdapter,
    contracts.router,
    contracts.onramp,
  ].map((address) => address.toLowerCase()),
)

const spenders: ReadonlySet<string> = new Set(
  [
    contracts.standardExchange,
    contracts.negRiskExchange,
    contracts.exchangeV3,
    contracts.collateralAdapter,
    contracts.negRiskCollateralAdapter,
    contracts.negRiskAdapter,
    contracts.router,
    contracts.onramp,
    contracts.autoRedeem,
    contracts.perpsDeposit,
  ].map((address) => address.toLowerCase()),
)

const approvalSelectors: readonly string[] = ['0x095ea7b3', '0xa22cb465']

const blocked = (index: number, what: string): never => {
  throw new HttpError(400, `call blocked: call[${index}] blocked: ${what} are not permitted`)
}

export const requireAllowedCalls = (calls: readonly WalletCall[], refused: readonly string[]): void => {
  for (const [index, { target, data }] of calls.entries()) {
    const to = target.toLowerCase()
    if (!targets.has(to) || refused.includes(to)) blocked(index, `calls to ${target}`)
    if (!approvalSelectors.includes(data.slice(0, 10).toLowerCase())) continue
    const spender = `0x${data.slice(34, 74).toLowerCase()}`
    if (!spenders.has(spender) || refused.includes(spender)) blocked(index, `approvals to ${spender}`)
  }
}

type Fields = Record<string, unknown>

const invalid = (name: string): never => {
  throw new HttpError(400, `invalid request: ${name}`)
}

export const addressOf = (fields: Fields, name: string): Address => {
  const value = fields[name]
  return typeof value === 'string' && /^0x[0-9a-fA-F]{40}$/.test(value) ? (value as Address) : invalid(name)
}

const hexOf = (fields: Fields, name: string): Hex => {
  const value = fields[name]
  return typeof value === 'string' && /^0x([0-9a-fA-F]{2})*$/.test(value) ? (value as Hex) : invalid(name)
}

const integerOf = (fields: Fields, name: string): bigint => {
  const value = fields[name]
  return typeof value === 'string' && /^[0-9]{1,78}$/.test(value) ? BigInt(value) : invalid(name)
}

const callsMax = 50

/** The batch of a deposit wallet in a request. */
export const readBatch = (body: Fields): { batch: WalletBatch; signature: Hex } => {
  const parameters = body.depositWalletParams
  if (typeof parameters !== 'object' || parameters === null) return invalid('depositWalletParams')
  const fields = parameters as Fields
  const { calls } = fields
  if (!Array.isArray(calls) || calls.length === 0 || calls.length > callsMax) return invalid('calls')
  const batch = {
    wallet: addressOf(fields, 'depositWallet'),
    nonce: integerOf(body, 'nonce'),
    deadline: integerOf(fields, 'deadline'),
    calls: calls.map((call: Fields) => ({
      target: addressOf(call, 'target'),
      value: integerOf(call, 'value'),
      data: hexOf(call, 'data'),
    })),
  }
  return { batch, signature: hexOf(body, 'signature') }
}

export const readSafe = (body: Fields): { transaction: SafeTransaction; signature: Hex } => {
  const operation = String((body.signatureParams as Fields | undefined)?.operation ?? '0')
  const transaction = {
    safe: addressOf(body, 'proxyWallet'),
    to: addressOf(body, 'to'),
    value: body.value === undefined ? 0n : integerOf(body, 'value'),
    data: hexOf(body, 'data'),
    operation: operation === '1' ? (1 as const) : (0 as const),
    nonce: integerOf(body, 'nonce'),
  }
  return { transaction, signature: hexOf(body, 'signature') }
}

/** The calls that a Safe's transaction makes; only MultiSend may be called by delegation. */
export const callsOfSafe = ({ to, value, data, operation }: SafeTransaction): WalletCall[] => {
  if (operation === 0) return [{ target: to, value, data }]
  const calls = isMultiSend(to) ? multiSendCalls(data) : undefined
  return calls ?? invalid('operation')
}

const requireSigner = (signer: string | undefined, owner: string): void => {
  if (signer?.toLowerCase() !== owner.toLowerCase()) throw new HttpError(400, 'invalid signature')
}

export const requireSignedBatch = (batch: WalletBatch, signature: Hex, owner: string): void =>
  requireSigner(recoverBatch(batch, signature), owner)

export const requireSignedSafe = (transaction: SafeTransaction, signature: Hex, owner: string): void =>
  requireSigner(recoverSafeTransaction(transaction, signature), owner)
