import { type Chain, sameAddress } from '#kernel/money/chains.ts'
import type { Evm } from '#upstreams/evm/evm.ts'
import type { Solana } from '#upstreams/solana/solana.ts'
import type { RecipientAddresses } from './recipients.ts'

type AddressesDeps = {
  parse: RecipientAddresses['parse']
  /** Contracts and accounts that the gateway uses on a chain. */
  usedOn: (row: Chain) => readonly (string | null | undefined)[]
  evmOf: (chainId: string) => Pick<Evm, 'account' | 'tokenFacts' | 'simulate'>
  solanaOf: (chainId: string) => Pick<Solana, 'accounts'>
  programs: { systemProgram: string; tokenPrograms: readonly string[] }
}

const zeroAddress = '0x0000000000000000000000000000000000000000'
const precompiles = /^0x0{36}[0-9a-f]{4}$/i

/** Creates checks of an address: its spelling, what the gateway reserves, and whether it can receive. */
export function createRecipientAddresses(deps: AddressesDeps): RecipientAddresses {
  return {
    parse: deps.parse,
    reservedFor(row, address) {
      const isSame = (each: string | null | undefined) => !!each && sameAddress(row, each, address)
      if (row.family === 'evm' && isSame(zeroAddress)) return 'the zero address'
      if (row.family === 'evm' && precompiles.test(address)) return 'an address that the chain reserves'
      if ([row.native, ...row.tokens].some((token) => isSame(token.address)) || isSame(row.usdc))
        return 'the address of a token'
      return deps.usedOn(row).some(isSame) ? 'a contract or account that this gateway uses' : undefined
    },
    problemOf: (row, address, sender) =>
      row.family === 'evm'
        ? evmProblem(deps.evmOf(row.id), address, sender)
        : svmProblem(deps.solanaOf(row.id), address, deps.programs),
  }
}

async function evmProblem(chain: ReturnType<AddressesDeps['evmOf']>, address: string, sender: string) {
  const { hasOtherCode } = await chain.account(address)
  if (!hasOtherCode) return undefined
  if (await chain.tokenFacts(address))
    return 'it is the contract of a token, which would keep what is sent to it'
  // The simulated payment is of zero units: the contract runs the same code for it as for any other payment.
  const { ok } = await chain.simulate(sender, [{ to: address, value: 0n, data: '0x' }])
  return ok ? undefined : 'it is a contract that takes no payments'
}

async function svmProblem(
  chain: ReturnType<AddressesDeps['solanaOf']>,
  address: string,
  { systemProgram, tokenPrograms }: AddressesDeps['programs'],
) {
  const { accounts } = await chain.accounts([address])
  const owner = accounts[0]?.owner
  if (owner === undefined || owner === systemProgram) return undefined
  return tokenPrograms.includes(owner)
    ? 'it is a mint or a token account; name the wallet that owns it'
    : 'it belongs to a program'
}
