/** Relay's own client, unmodified, against the solver of a local world. */
import type { Chain, WalletClient } from 'viem'

export type ItemData = {
  to: `0x${string}`
  data: `0x${string}`
  value: string
  chainId: number
  gas?: string
  instructions?: {
    keys: { pubkey: string; isSigner: boolean; isWritable: boolean }[]
    programId: string
    data: string
  }[]
  addressLookupTableAddresses?: string[]
}
type StepItem = { status: string; data: ItemData; txHashes?: { txHash: string; chainId: number }[] }
export type Step = { id: string; requestId: string; items: StepItem[] }
type AmountView = { amount: string; minimumAmount: string; currency: { address: string } }
export type Quote = {
  steps: Step[]
  details: { operation: string; currencyIn: AmountView; currencyOut: AmountView }
  fees: Record<string, AmountView>
}
/** The form in which the client takes a wallet of another kind than viem's. */
export type AdaptedWallet = {
  vmType: 'svm'
  getChainId(): Promise<number>
  address(): Promise<string>
  handleSignMessageStep(): Promise<never>
  handleSendTransactionStep(chainId: number, item: StepItem): Promise<string>
  handleConfirmTransactionStep(
    hash: string,
  ): Promise<{ blockHash: string; blockNumber: number; txHash: string }>
  switchChain(): Promise<void>
}
type Wallet = WalletClient | AdaptedWallet
type RelayChain = { id: number; name: string; displayName: string; vmType: string }
type Actions = {
  getQuote(parameters: Record<string, unknown>): Promise<Quote>
  execute(data: {
    quote: Quote
    wallet: Wallet
    onProgress: () => void
    disableCapabilitiesCheck: true
  }): Promise<{ data: { steps: Step[] } }>
}
type RelayClient = { actions: Actions; chains: RelayChain[] }
type Sdk = {
  createClient(options: Record<string, unknown>): RelayClient
  convertViemChainToRelayChain(chain: Chain): RelayChain
}

/** Named by a variable, so that the type check of a tree does not need the package: its types are read from its files. */
const relayPackage: string = '@relayprotocol/relay-sdk'

const pollingMs = 50

export const relayClient = async (
  baseApiUrl: string,
  evm: readonly Chain[],
  others: readonly RelayChain[] = [],
): Promise<RelayClient> => {
  const sdk = (await import(relayPackage)) as Sdk
  return sdk.createClient({
    baseApiUrl,
    source: 'portico',
    pollingInterval: pollingMs,
    confirmationPollingInterval: pollingMs,
    maxPollingAttemptsBeforeTimeout: 400,
    chains: [...evm.map(sdk.convertViemChainToRelayChain), ...others],
  })
}
