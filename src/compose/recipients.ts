import type { Config } from '#config.ts'
import type { RecipientAddresses } from '#features/policy/recipients.ts'
import { type Chain, sameAddress } from '#kernel/money/chains.ts'
import { checksummedAddress } from '#upstreams/evm/address.ts'
import { isAddress } from '#upstreams/solana/base58.ts'
import * as programs from '#upstreams/solana/program-ids.ts'
import type { Chains } from './chains.ts'
import { platformLimits, tillOf } from './settings.ts'

/** The chains on which wallets can send, and what is known of an address there. */

export const sendingChains = ({ table, ports, svmPorts }: Chains): Chain[] =>
  table.filter((row) =>
    row.family === 'evm' ? row.delegate !== null && ports.has(row.id) : svmPorts.has(row.id),
  )

const zeroAddress = '0x0000000000000000000000000000000000000000'
const precompiles = /^0x0{36}[0-9a-f]{4}$/i

export function recipientAddresses(config: Config, chains: Chains): RecipientAddresses {
  const { contracts } = platformLimits(config, chains.table, { venue: true, swaps: true })
  const evmReserved = (row: Extract<Chain, { family: 'evm' }>) => [
    row.multicall,
    row.delegate,
    row.swaps?.wrapped,
    ...(chains.ports.get(row.id)?.sponsor.signers ?? []),
  ]
  const svmReserved = (row: Chain) => [
    ...Object.values(programs).filter((each) => typeof each === 'string'),
    ...(chains.svmPorts.get(row.id)?.sponsor.signers ?? []),
  ]
  return {
    parse: ({ family }, text) =>
      family === 'evm' ? checksummedAddress(text) : isAddress(text) ? text : undefined,
    reservedFor(row, address) {
      const isSame = (each: string | null | undefined) => !!each && sameAddress(row, each, address)
      if (row.family === 'evm' && isSame(zeroAddress)) return 'the zero address'
      if (row.family === 'evm' && precompiles.test(address)) return 'an address that the chain reserves'
      if ([row.native, ...row.tokens].some((token) => isSame(token.address)) || isSame(row.usdc))
        return 'the address of a token'
      const own = [
        ...contracts.filter(({ chainId }) => chainId === row.id).map((each) => each.address),
        tillOf(config, row)?.address,
        ...(row.family === 'evm' ? evmReserved(row) : svmReserved(row)),
      ]
      return own.some(isSame) ? 'a contract or account that this gateway uses' : undefined
    },
    problemOf: (row, address, sender) =>
      row.family === 'evm'
        ? evmProblem(chains, row.id, address, sender)
        : svmProblem(chains, row.id, address),
  }
}

async function evmProblem({ ports }: Chains, chainId: string, address: string, sender: string) {
  const { chain } = ports.get(chainId)!
  const { hasOtherCode } = await chain.account(address)
  if (!hasOtherCode) return undefined
  if (await chain.tokenFacts(address))
    return 'it is the contract of a token, which would keep what is sent to it'
  // A payment of nothing runs the same code as one of something.
  const { ok } = await chain.simulate(sender, [{ to: address, value: 0n, data: '0x' }])
  return ok ? undefined : 'it is a contract that takes no payments'
}

async function svmProblem({ svmPorts }: Chains, chainId: string, address: string) {
  const { accounts } = await svmPorts.get(chainId)!.chain.accounts([address])
  const owner = accounts[0]?.owner
  if (owner === undefined || owner === programs.systemProgram) return undefined
  return programs.tokenPrograms.some((each) => each === owner)
    ? 'it is a mint or a token account; name the wallet that owns it'
    : 'it belongs to a program'
}
