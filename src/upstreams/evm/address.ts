import { getAddress, isAddress } from 'viem/utils'

/** Returns the text if it is an address whose letters match its checksum, and undefined otherwise. */
export function checksummedAddress(text: string): string | undefined {
  return isAddress(text, { strict: false }) && getAddress(text) === text ? text : undefined
}

/** Returns an address with the letters of its checksum, and any other text unchanged. */
export const withChecksum = (text: string): string =>
  isAddress(text, { strict: false }) ? getAddress(text) : text
