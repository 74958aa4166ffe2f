import type { Config } from '#config.ts'
import { createRecipientAddresses } from '#features/policy/recipient-addresses.ts'
import type { RecipientAddresses } from '#features/policy/recipients.ts'
import type { Chain } from '#kernel/money/chains.ts'
import { checksummedAddress } from '#upstreams/evm/address.ts'
import { isAddress } from '#upstreams/solana/base58.ts'
import * as programs from '#upstreams/solana/program-ids.ts'
import type { Chains } from './chains.ts'
import { platformLimits, tillOf } from './settings.ts'

/** The chains on which wallets can send. */
export const sendingChains = ({ table, ports, svmPorts }: Chains): Chain[] =>
  table.filter((row) =>
    row.family === 'evm' ? row.delegate !== null && ports.has(row.id) : svmPorts.has(row.id),
  )

export function recipientAddresses(config: Config, { table, ports, svmPorts }: Chains): RecipientAddresses {
  const { contracts } = platformLimits(config, table, { venue: true, swaps: true, predictions: true })
  const reservedOn = (row: Chain) =>
    row.family === 'evm'
      ? [row.multicall, row.delegate, row.swaps?.wrapped, ...(ports.get(row.id)?.sponsor.signers ?? [])]
      : [
          ...Object.values(programs).filter((each) => typeof each === 'string'),
          ...(svmPorts.get(row.id)?.sponsor.signers ?? []),
        ]
  return createRecipientAddresses({
    parse: ({ family }, text) =>
      family === 'evm' ? checksummedAddress(text) : isAddress(text) ? text : undefined,
    usedOn: (row) => [
      ...contracts.filter(({ chainId }) => chainId === row.id).map((each) => each.address),
      tillOf(config, row)?.address,
      ...reservedOn(row),
    ],
    evmOf: (chainId) => ports.get(chainId)!.chain,
    solanaOf: (chainId) => svmPorts.get(chainId)!.chain,
    programs,
  })
}
