import type { Clock } from '#kernel/clock.ts'
import { fits } from '#kernel/contract/fits-schema.ts'
import type { RelayReply, RelayState, VenueRelayer } from '#kernel/money/prediction-setup.ts'
import { type RelayerKey, relayerHeaders } from './auth-headers.ts'
import { contracts } from './contracts.ts'
import { baseUnitsOf } from './decimals.ts'
import { safeTransactionOf } from './multi-send.ts'
import { chainNonceOf, isWalletBusy, relayRefusalOf } from './refusals.ts'
import type { Call, Requests } from './requests.ts'
import { RelayParams, RelaySubmitted, RelayTransaction, RelayTransactions } from './wire-relayer.ts'

/** Sends signed batches of wallets through the venue's relayer, which pays the gas. */

const zeroAddress = `0x${'0'.repeat(40)}`
/** The relayer may answer only after it has simulated the calls. */
const submitTimeoutMs = 30_000

const stateOf = (venueState: string): RelayState['state'] => {
  if (venueState === 'STATE_CONFIRMED') return 'confirmed'
  return venueState === 'STATE_FAILED' || venueState === 'STATE_INVALID' ? 'failed' : 'pending'
}

type Signed = { [K in 'type' | 'nonce' | 'signature' | 'metadata']?: string | null }
/** The relayer lists a nonce for the creation of a wallet too, which has none. */
const signedOf = ({
  type,
  nonce,
  signature,
  metadata,
}: Signed): Pick<RelayState, 'nonce' | 'signature' | 'metadata'> => {
  const isSigned = type !== 'WALLET-CREATE'
  return {
    nonce: isSigned && nonce && /^\d{1,78}$/.test(nonce) ? BigInt(nonce) : null,
    signature: (isSigned && signature) || null,
    metadata: metadata || null,
  }
}

type RelayerDeps = { requests: Requests; relayerKey: RelayerKey; clock: Clock }

export function createRelayer({ requests, relayerKey, clock }: RelayerDeps): VenueRelayer {
  const authorized = (call: Omit<Call, 'service'>): Call => {
    const { method = 'GET', path, body = '' } = call
    const timestampSeconds = Math.floor(clock.now().getTime() / 1_000)
    return {
      ...call,
      service: 'relayer',
      headers: relayerHeaders(relayerKey, { method, path, body, timestampSeconds }),
    }
  }
  return {
    async nonce({ kind, owner }) {
      const query = { address: owner, type: kind === 'safe' ? 'SAFE' : 'WALLET' }
      const path = '/v1/account/transactions/params'
      return baseUnitsOf((await requests.read(authorized({ path, query }), RelayParams)).nonce)
    },
    createWalletBody: (owner) =>
      JSON.stringify({ from: owner, to: contracts.walletFactory, type: 'WALLET-CREATE' }),
    body(action, signature, metadata) {
      if (action.type === 'wallet_batch')
        return JSON.stringify({
          depositWalletParams: {
            calls: action.calls.map(({ to, value, data }) => ({ data, target: to, value: String(value) })),
            deadline: String(action.deadlineSeconds),
            depositWallet: action.wallet,
          },
          from: action.owner,
          metadata,
          nonce: String(action.nonce),
          signature,
          to: contracts.walletFactory,
          type: 'WALLET',
        })
      const { to, value, data, operation } = safeTransactionOf(action.calls)
      return JSON.stringify({
        data,
        from: action.owner,
        metadata,
        nonce: String(action.nonce),
        proxyWallet: action.safe,
        signature,
        signatureParams: {
          baseGas: '0',
          gasPrice: '0',
          gasToken: zeroAddress,
          operation: String(operation),
          refundReceiver: zeroAddress,
          safeTxnGas: '0',
        },
        to,
        type: 'SAFE',
        ...(value > 0n && { value: String(value) }),
      })
    },
    async submit(body): Promise<RelayReply> {
      const call = authorized({ method: 'POST', path: '/submit', body })
      const answer = await requests.act({ ...call, timeoutMs: submitTimeoutMs })
      if (answer.type !== 'answered') return answer
      const { status, value, message } = answer
      if (status === 200 && fits(RelaySubmitted, value))
        return { type: 'accepted', relayId: value.transactionID }
      if (status < 400) return { type: 'unknown', message: 'an unknown format' }
      if (isWalletBusy(message)) return { type: 'later', reason: 'wallet_busy', message, retryAfterMs: null }
      const reason = relayRefusalOf(message)
      return { type: 'rejected', reason, message, chainNonce: chainNonceOf(message) }
    },
    async state(relayId) {
      const path = `/v1/account/transactions/${encodeURIComponent(relayId)}`
      const found = await requests.readOptional(authorized({ path }), RelayTransaction)
      return (
        found && {
          relayId: found.transaction_id,
          state: stateOf(found.state),
          venueState: found.state,
          txHash: found.transaction_hash || null,
          error: found.error_msg || null,
          ...signedOf(found),
        }
      )
    },
    async recent(owner) {
      const list = await requests.read(authorized({ path: '/transactions' }), RelayTransactions)
      const own = list.filter(({ from }) => from?.toLowerCase() === owner.toLowerCase())
      return own.map(({ transactionID, state, transactionHash, errorMsg, ...signed }) => ({
        relayId: transactionID,
        state: stateOf(state),
        venueState: state,
        txHash: transactionHash || null,
        error: errorMsg || null,
        ...signedOf(signed),
      }))
    },
  }
}
