import type { Account } from './account.ts'
import { lookupTableProgram } from './programs.ts'
import { keyAt, u32At, u64At } from './token-layout.ts'

const headerBytes = 56
const initialised = 1

/** The addresses of a table; undefined when the account is no table. */
export const tableAddresses = ({ owner, data }: Account): string[] | undefined => {
  if (owner !== lookupTableProgram || data.length < headerBytes || u32At(data, 0) !== initialised)
    return undefined
  return Array.from({ length: (data.length - headerBytes) >> 5 }, (_, at) =>
    keyAt(data, headerBytes + at * 32),
  )
}

/** The jsonParsed form, which clients read before they compress a message. */
export const parsedTable = (account: Account) => {
  const addresses = tableAddresses(account)
  if (addresses === undefined) return undefined
  const { data } = account
  return {
    parsed: {
      info: {
        addresses,
        ...(data[21] === 1 ? { authority: keyAt(data, 22) } : {}),
        deactivationSlot: u64At(data, 4).toString(),
        lastExtendedSlot: u64At(data, 12).toString(),
        lastExtendedSlotStartIndex: data[20],
      },
      type: 'lookupTable',
    },
    program: 'address-lookup-table',
    space: data.length,
  }
}
