const emailForm = /^[\w.!#$%&*+/=?^{|}~-]{1,64}@[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/

/** Returns the address in the form in which it is stored, or undefined if the text is no address. */
export const readEmail = (text: string): string | undefined => {
  const email = text.trim().toLowerCase()
  return email.length <= 254 && emailForm.test(email) && email.includes('.', email.indexOf('@'))
    ? email
    : undefined
}
