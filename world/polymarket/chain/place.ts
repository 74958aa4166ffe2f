import type { Rpc } from '#world/evm/rpc.ts'
import { accountAddresses, contracts } from './addresses.ts'
import { addressOfContract, artifact, contractFiles } from './artifacts.ts'

/** For gas: a million of the chain's coin. */
export const accountWei = 10n ** 24n

/** Places every contract at its address, without a transaction. Worlds of an earlier version lack them. */
export const placeContracts = async (rpc: Rpc): Promise<void> => {
  const code = await rpc.call('eth_getCode', [contracts.pusd, 'latest'])
  if (code !== '0x') return
  await rpc.batch([
    ...contractFiles.map((file) => ({
      method: 'anvil_setCode',
      params: [addressOfContract(file), artifact(file).runtime],
    })),
    ...Object.values(accountAddresses).map((address) => ({
      method: 'anvil_setBalance',
      params: [address, `0x${accountWei.toString(16)}`],
    })),
  ])
}
