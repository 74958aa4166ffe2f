/** A Solana wallet in the form that Relay's client takes, over web3.js. */
import {
  type AddressLookupTableAccount,
  type Connection,
  type Keypair,
  PublicKey,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js'
import type { AdaptedWallet, ItemData } from './relay-client.ts'
import { pollFor, solanaChain } from './solver-world.ts'

/** Compiles the instructions of a step, as a wallet does; `payer` pays the fee where the owner has no SOL. */
export const compileStep = async (
  connection: Connection,
  data: Pick<ItemData, 'instructions' | 'addressLookupTableAddresses'>,
  payer: PublicKey,
): Promise<VersionedTransaction> => {
  const instructions = (data.instructions ?? []).map(
    ({ keys, programId, data: hex }) =>
      new TransactionInstruction({
        keys: keys.map(({ pubkey, ...role }) => ({ pubkey: new PublicKey(pubkey), ...role })),
        programId: new PublicKey(programId),
        data: Buffer.from(hex, 'hex'),
      }),
  )
  const tables = await Promise.all(
    (data.addressLookupTableAddresses ?? []).map(
      async (address) =>
        (await connection.getAddressLookupTable(new PublicKey(address))).value as AddressLookupTableAccount,
    ),
  )
  const { blockhash } = await connection.getLatestBlockhash('confirmed')
  const message = new TransactionMessage({ payerKey: payer, recentBlockhash: blockhash, instructions })
  return new VersionedTransaction(message.compileToV0Message(tables))
}

export const confirmed = (connection: Connection, signature: string) =>
  pollFor(`the confirmation of ${signature}`, async () => {
    const { value } = await connection.getSignatureStatus(signature, { searchTransactionHistory: true })
    if (value?.err) throw new Error(`${signature} failed: ${JSON.stringify(value.err)}`)
    const isThere = value?.confirmationStatus === 'confirmed' || value?.confirmationStatus === 'finalized'
    return isThere ? value : undefined
  })

export const sendStep = async (
  connection: Connection,
  owner: Keypair,
  data: Pick<ItemData, 'instructions' | 'addressLookupTableAddresses'>,
  sponsor: Keypair = owner,
): Promise<string> => {
  const transaction = await compileStep(connection, data, sponsor.publicKey)
  transaction.sign(sponsor === owner ? [owner] : [sponsor, owner])
  return connection.sendTransaction(transaction)
}

export const adaptedWallet = (connection: Connection, owner: Keypair): AdaptedWallet => ({
  vmType: 'svm',
  getChainId: async () => solanaChain,
  address: async () => owner.publicKey.toBase58(),
  handleSignMessageStep: () => Promise.reject(new Error('not needed')),
  handleSendTransactionStep: (_chainId, item) => sendStep(connection, owner, item.data),
  handleConfirmTransactionStep: async (hash) => {
    const { slot } = await confirmed(connection, hash)
    return { blockHash: String(slot), blockNumber: slot, txHash: hash }
  },
  switchChain: async () => {},
})
