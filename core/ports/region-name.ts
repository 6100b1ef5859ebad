/** The names of AWS's Regions, in every partition: eu-central-1, us-gov-west-1, eusc-de-east-1. */
export const regionName = /^[a-z]{2,5}(-[a-z]+)+-[0-9]{1,2}$/;
