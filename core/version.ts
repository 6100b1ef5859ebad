/** Of the package; a test holds it to package.json, which is not in a function's bundle. */
export const version = '0.1.0';
