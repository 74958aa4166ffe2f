import { encodeFunctionData, erc20Abi } from 'viem'
import { contracts } from '#world/polymarket/chain/addresses.ts'
import type { Address, Call } from '#world/polymarket/chain/chain-terms.ts'
import { accountOf, eventually } from '../venue/venue.ts'
import { depositClient } from './official-client.ts'
import { signBatch } from './polygon.ts'
import { readJson } from './prediction.ts'
import type { PredictionWorld } from './prediction-world.ts'

/** Requests to the relayer as a client of its interface alone makes them. */

export type Reply = { status: number; body: Record<string, string> }
type Given = { nonce?: bigint; deadline?: bigint }

export type RelayerOwner = {
  wallet: Address
  /** With a key of the relayer for this account. */
  headers: Record<string, string>
  nonce: () => Promise<bigint>
  /** The body of a signed request. */
  sign: (calls: readonly Call[], given?: Given) => Promise<Record<string, unknown> & { nonce: string }>
  submit: (body: unknown, headers?: Record<string, string>) => Promise<Reply>
  send: (calls: readonly Call[], given?: Given) => Promise<Reply>
}

export type RelayedTransaction = { state: string; error_msg: string; transaction_hash: string }

/** The owner of a deposit wallet with a thousand dollars. */
export const relayerOwner = async (market: PredictionWorld, number: number): Promise<RelayerOwner> => {
  const url = market.world.urls.polymarket.relayer
  const account = accountOf(number)
  const wallet = (await depositClient(market, number)).account.wallet as Address
  const { key } = await market.control<{ key: string }>('POST', '/relayer-key', { address: account.address })
  const own = { relayer_api_key: key, relayer_api_key_address: account.address }
  const readNonce = async () => {
    const query = `address=${account.address}&type=WALLET`
    return BigInt((await readJson<{ nonce: string }>(`${url}/nonce?${query}`)).nonce)
  }
  const sign: RelayerOwner['sign'] = async (calls, given = {}) => {
    const nonce = given.nonce ?? (await readNonce())
    const deadline = given.deadline ?? BigInt(Math.floor(Date.now() / 1_000) + 600)
    const { batch, signature } = await signBatch(account, wallet, { nonce, deadline, calls })
    const list = batch.calls.map(({ target, value, data }) => ({ target, value: String(value), data }))
    return {
      type: 'WALLET',
      from: account.address,
      to: contracts.walletFactory,
      nonce: String(nonce),
      signature,
      depositWalletParams: { depositWallet: wallet, deadline: String(deadline), calls: list },
    }
  }
  const submit: RelayerOwner['submit'] = async (body, headers = own) => {
    const reply = await fetch(`${url}/submit`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: reply.status, body: (await reply.json()) as Record<string, string> }
  }
  return {
    wallet,
    headers: own,
    nonce: readNonce,
    sign,
    submit,
    send: async (calls, given) => submit(await sign(calls, given)),
  }
}

export const relayed = (relayerUrl: string, id = ''): Promise<RelayedTransaction> =>
  eventually('the end of the transaction', async () => {
    const found = await readJson<RelayedTransaction>(`${relayerUrl}/v1/account/transactions/${id}`)
    return ['STATE_CONFIRMED', 'STATE_FAILED'].includes(found.state) ? found : undefined
  })

export const transferCall = (token: Address, to: Address, amount: bigint): Call => ({
  to: token,
  data: encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [to, amount] }),
})
