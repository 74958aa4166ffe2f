import { getAddress, isAddress } from 'viem/utils'

/** Returns undefined if the text is no address, or its letters do not match its checksum. */
export function checksummedAddress(text: string): string | undefined {
  return isAddress(text, { strict: false }) && getAddress(text) === text ? text : undefined
}

/** Returns an address with the letters of its checksum, and any other text unchanged. */
export const withChecksum = (text: string): string =>
  isAddress(text, { strict: false }) ? getAddress(text) : text
