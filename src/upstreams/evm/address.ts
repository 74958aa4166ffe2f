import { getAddress, isAddress } from 'viem/utils'

/** Undefined where the text is no address, or its letters are not those of its checksum. */
export function checksummedAddress(text: string): string | undefined {
  return isAddress(text, { strict: false }) && getAddress(text) === text ? text : undefined
}

/** An address in the letters of its checksum; any other text as it is. */
export const withChecksum = (text: string): string =>
  isAddress(text, { strict: false }) ? getAddress(text) : text
