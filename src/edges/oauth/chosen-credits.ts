/** Reads how many credits a day a person allows on a page. */
export const chosenCredits =
  ({ default: initial, max }: { default: number; max: number }) =>
  (text = ''): number =>
    /^[1-9]\d{0,8}$/.test(text) ? Math.min(Number(text), max) : initial
